"""Calibrating: what does the audit answer of models whose truth is known?

Every draw of every family is audited at the very settings of the default and of the quick audit, by the tests that
decide and by no others, and its answer is counted against its truth. A draw is a line of `draws.jsonl`, keyed by
settings, criteria and code: a calibration that was stopped goes on where it was.
"""

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import torch

from exegete.plugins import (
    FAMILIES,
    Criteria,
    Engine,
    ExegeteError,
    Progress,
    code_hash,
    engine_of,
    key_of,
    load_criteria,
    plain_disk_errors,
    silent,
    write_csv,
    write_json,
    write_text,
)
from exegete.wings.calibration.count import all_pass, count_draws, cross_table, summarise_counts
from exegete.wings.calibration.draws import AUDITS, AuditedDraw, draw_line, mediation_of
from exegete.wings.calibration.thresholds import leave_one_family_out
from exegete.wings.calibration.votes import votes_file

DRAWS = 60
LINES = "draws.jsonl"
SHOWN = (
    "audit", "family", "number", "known", "truth", "grounds", "ranks", "reads", "carries", "opposed", "texts", "answer",
)  # fmt: skip
SCRIPT = "exegete calibrate --draws {draws} --out {out}\n"


@dataclass(frozen=True)
class Calibration:
    """What the audit said of every draw, and what was counted."""

    lines: Sequence[dict[str, Any]]
    criteria: Criteria

    @property
    def draws(self) -> pl.DataFrame:
        """A row per draw."""
        shown = [{name: line[name] for name in SHOWN} for line in self.lines]
        return pl.DataFrame(shown, infer_schema_length=None).sort("audit", "family", "number", maintain_order=True)

    @property
    def table(self) -> pl.DataFrame:
        """Truth × answer by family."""
        return count_draws(self.draws)

    @property
    def thresholds(self) -> pl.DataFrame:
        """What the other families would choose."""
        return leave_one_family_out(self.lines, self.criteria)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        table = self.table
        told = {"passes": all_pass(table), **summarise_counts(table)}
        return told | {"families": table.to_dicts(), "left_out": self.thresholds.to_dicts()}


class CalibrationPlan(NamedTuple):
    """What is drawn and audited."""

    families: tuple[str, ...] = tuple(FAMILIES)
    draws: int = DRAWS
    audits: tuple[str, ...] = tuple(AUDITS)
    criteria: Path | None = None

    @property
    def asked(self) -> list[AuditedDraw]:
        """Every draw; families side by side, so that one that was stopped has some of each."""
        return [
            AuditedDraw(f, number, audit)
            for audit in self.audits
            for number in range(self.draws)
            for f in self.families
        ]


class _Work(NamedTuple):
    asked: AuditedDraw
    criteria: Path | None

    def __str__(self) -> str:
        return f"{self.asked.family} {self.asked.number}, {self.asked.audit}"


def calibrate(
    wanted: CalibrationPlan, folder: Path, engine: Engine | None = None, progress: Progress = silent
) -> Calibration:
    """Audit every draw, or go on with it."""
    criteria = load_criteria(wanted.criteria)
    keys = {audit: key_for(audit, criteria) for audit in wanted.audits}
    path = folder / LINES
    known = {_name(line): line for line in _kept(path) if line["key"] == keys.get(line["audit"])}
    left = [_Work(asked, wanted.criteria) for asked in wanted.asked if asked not in known]
    engine = engine or engine_of("local", 1)
    with plain_disk_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf8") as file, engine:
            for done, (work, line) in enumerate(engine.map(_audited, left)):
                known[work.asked] = line = line | {"key": keys[work.asked.audit]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()
                progress("draws", len(wanted.asked) - len(left) + done + 1, len(wanted.asked))
    return Calibration([known[asked] for asked in wanted.asked], criteria)


def _name(line: dict[str, Any]) -> AuditedDraw:
    return AuditedDraw(line["family"], line["number"], line["audit"])


def _audited(work: _Work, progress: Progress) -> dict[str, Any]:  # noqa: ARG001
    return draw_line(work.asked, load_criteria(work.criteria))


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    """Lines that are whole; the last one may have been cut."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf8").splitlines()
    for place, line in enumerate(lines):
        try:
            yield json.loads(line)
        except ValueError:
            if place < len(lines) - 1:
                raise ExegeteError(f"{path} is broken in line {place + 1}: remove that line") from None


def key_for(audit: str, criteria: Criteria) -> str:
    """Of all that determines what is said of a draw: how it is asked, by which criteria, and the code."""
    asked, code = asdict(mediation_of(audit)), code_hash("exegete.wings.calibration.draws")
    return key_of(asked=asked, criteria=criteria.model_dump(), code=code)


def write_calibration(found: Calibration, wanted: CalibrationPlan, folder: Path) -> Path:
    """Write tables, figure, votes and, last, where they come from; returns the figure."""
    from exegete.plugins import drawing
    from exegete.wings.calibration.figure import calibration

    draws, table, figure = found.draws, found.table, folder / "calibration.svg"
    tables = {"draws": draws, "families": table, "truth_answer": cross_table(draws), "left_out": found.thresholds}
    for name, frame in tables.items():
        write_csv(folder / f"{name}.csv", frame)
    write_text(figure, drawing(calibration(draws, found.criteria)).svg)
    write_text(folder / "votes.toml", votes_file(table, found.criteria))
    write_text(folder / "calibrate.sh", SCRIPT.format(draws=wanted.draws, out=folder))
    keys = {audit: key_for(audit, found.criteria) for audit in wanted.audits}
    made = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "code": code_hash("exegete.wings.calibration.draws"),
    }
    asked = wanted._asdict() | {"criteria": found.criteria.model_dump()}
    write_json(folder / "manifest.json", {"keys": keys, "wanted": asked, **made, **summarise_counts(table)})
    return figure
