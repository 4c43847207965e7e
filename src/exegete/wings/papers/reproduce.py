"""Reproducing: a paper's tables run again, each printed number beside ours with a verdict.

What a verdict means is in `reproducing_rule`; what a paper needs is in its TOML file. No printed number is left out:
one that can't be had, was not run or is not compared says so.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from exegete.plugins import (
    MANIFEST as MANIFEST,
)
from exegete.plugins import (
    Cell,
    Engine,
    ExegeteError,
    Progress,
    Study,
    __version__,
    engine_of,
    load_study,
    narrow_cells,
    on,
    read_json,
    run_study,
    silent,
    unknown,
    write_csv,
    write_json,
)
from exegete.wings.papers.lookup import Counterpart, KeptTables, PrintedPlace, printed_place, sources_of
from exegete.wings.papers.paper import Paper, StudySource, load_paper
from exegete.wings.papers.published import KEYS, read_published
from exegete.wings.papers.reasons import explain_deviation, reasons_for
from exegete.wings.papers.rule import RUNS, VERDICTS, Standing, Yardstick, judge_number, judge_words

TABLE = "reproduction.csv"


@dataclass(frozen=True)
class Line:
    """One printed number beside ours."""

    table: str
    dataset: str
    model: str
    attention: str
    projection: str
    quantity: str
    class_: str
    published: float | None
    std: float | None
    sign: str  # of what is known in words only
    ours: float | None
    low: float | None
    high: float | None
    reference: float | None
    tolerance: float | None
    seeds: int | None
    n: int | None
    verdict: Standing
    reason: str
    differs: str  # between the paper and ours, in a sentence
    task: str
    our_model: str
    study: str


@dataclass(frozen=True)
class Reproduction:
    """Everything that a paper printed, or one table of it, beside ours."""

    paper: Paper
    tables: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """A row per printed number."""
        schema = {name: _TYPES.get(name, pl.String) for name in Line.__dataclass_fields__}
        rows = [asdict(line) for line in self.lines]
        return pl.DataFrame(rows, schema=schema).rename({"class_": "class"})

    @property
    def counts(self) -> dict[str, int]:
        """How many have each verdict."""
        return {verdict: sum(line.verdict == verdict for line in self.lines) for verdict in VERDICTS}

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        about = {"paper": self.paper.name, "title": self.paper.title, "tables": list(self.tables)}
        return about | {"counts": self.counts, "rows": self.frame.to_dicts()}


_TYPES: dict[str, Any] = dict.fromkeys(
    ("published", "std", "ours", "low", "high", "reference", "tolerance"), pl.Float64
) | dict.fromkeys(("seeds", "n"), pl.Int64)


def find_tables(text: str) -> tuple[Paper, tuple[str, ...]]:
    """The paper and the tables that `PAPER` or `PAPER:TABLE` asks for."""
    name, _, table = text.partition(":")
    paper = load_paper(name)
    if table and table not in paper.tables:
        raise unknown(f"table of {name}", table, paper.tables)
    return paper, (table,) if table else tuple(paper.tables)


def compare(paper: Paper, tables: Sequence[str], folder: Path) -> Reproduction:
    """Every printed number of some tables beside what the studies in a folder found."""
    printed = read_published(paper.name)
    kept = {table: list(sources_of(paper, table, folder)) for table in tables}
    rows = [row for row in printed.iter_rows(named=True) if row["table"] in tables]
    lines = ((row, _line(paper, row, kept[row["table"]], printed)) for row in rows)
    told = tuple(_with_reasons(paper, row, line, folder, printed) for row, line in lines)
    return Reproduction(paper, tuple(tables), told)


def _with_reasons(paper: Paper, row: dict[str, Any], line: Line, folder: Path, printed: pl.DataFrame) -> Line:
    """A line that deviates, with what was tested to find out why."""
    reasons = reasons_for(paper, row) if line.verdict == "deviates" and line.ours is not None else []
    if line.ours is None or not reasons:
        return line

    def by(found: Counterpart, place: PrintedPlace) -> Yardstick:
        return _yardstick(paper, row, found, place, (), printed)

    tested = explain_deviation(reasons, row, line.ours, printed_place(paper, row), folder, by)
    return replace(line, reason="; ".join(filter(None, (line.reason, tested))))


def _line(paper: Paper, row: dict[str, Any], kept: Sequence[KeptTables], printed: pl.DataFrame) -> Line:
    about = paper.tables[row["table"]]
    for verdict in ("impossible", "not_compared"):
        if reason := getattr(about, verdict):
            return _without(row, verdict, reason)
    place = printed_place(paper, row)
    if reason := place.first("impossible"):
        instead = place.first("instead")
        return _without(row, "impossible", f"{reason}; {instead}" if instead else reason)
    if place.quantity.not_compared:
        return _without(row, "not_compared", place.quantity.not_compared)
    found = _find(kept, place)
    if found is None:
        runs = any(source.run for source in about.sources)
        return _without(row, "not_run", "no result here" if runs else "no study of ours asks it")
    return _beside(row, found, place, _yardstick(paper, row, found, place, kept, printed))


def _find(kept: Sequence[KeptTables], place: PrintedPlace) -> Counterpart | None:
    return next((found for source in kept if (found := source.find(place)) is not None), None)


def _without(row: dict[str, Any], verdict: str, reason: str) -> Line:
    word: Any = verdict.replace("_", " ")
    return _written(row, verdict=word, reason=reason)


def _beside(row: dict[str, Any], found: Counterpart, place: PrintedPlace, by: Yardstick) -> Line:
    if found.doubt:
        verdict, reason = "cannot tell", found.doubt
    elif row["mean"] is None:
        verdict, reason = judge_words(row["sign"], found.ours, by)
    else:
        verdict, reason = judge_number(row["mean"], found.ours, by)
    return _written(
        row, verdict=verdict, reason=reason, differs=place.first("differs") or "", reference=by.our_reference,
        tolerance=by.tolerance, ours=found.ours.value, low=found.ours.low, high=found.ours.high, seeds=found.seeds,
        n=found.n, task=found.task, our_model=found.model, study=found.source,
    )  # fmt: skip


def _written(row: dict[str, Any], **given: Any) -> Line:
    facts: dict[str, Any] = {name: row[name] for name in KEYS if name != "class"}
    facts |= {"class_": row["class"], "published": row["mean"], "std": row["std"], "sign": row["sign"]}
    facts |= dict.fromkeys(("ours", "low", "high", "reference", "tolerance", "seeds", "n"))
    facts |= dict.fromkeys(("differs", "task", "our_model", "study"), "")
    return Line(**(facts | given))


def _yardstick(
    paper: Paper,
    row: dict[str, Any],
    found: Counterpart,
    place: PrintedPlace,
    kept: Sequence[KeptTables],
    printed: pl.DataFrame,
) -> Yardstick:
    quantity = place.quantity
    tolerance = place.tolerance
    if quantity.std == "runs" and row["std"] is not None:
        tolerance = max(tolerance, RUNS * row["std"])
    if found.seeds == 1:
        tolerance *= math.sqrt(2)  # two single trainings are further apart than one and a mean
    stand_in = bool(place.first("stand_in"))
    no_effect = row["quantity"] in paper.tables[row["table"]].no_effect
    if other := place.first("beside"):
        keys = [pl.col(name) == row[name] for name in KEYS if name != "class"]
        theirs = printed.filter(*keys, pl.col("class") == other)["mean"].item()
        ours = _find(kept, printed_place(paper, row | {"class": other}))
        return Yardstick(tolerance, quantity.resolution, theirs, ours.ours.value if ours else None, stand_in, no_effect)
    own = next((part.reference for part in place.parts if part.reference is not None), None)
    reference = found.reference if own is None else own
    return Yardstick(tolerance, quantity.resolution, reference, None, stand_in, no_effect)


def run_for(
    paper: Paper,
    tables: Sequence[str],
    folder: Path,
    quick: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
    device: str | None = None,
) -> None:
    """Run or resume every study that some tables of a paper need, each in its own folder."""
    for study, cells in plan(paper, tables, quick).values():
        run_study(on(study, device), folder / study.name, cells, engine or engine_of(), progress)


def plan(paper: Paper, tables: Sequence[str], quick: bool = False) -> dict[str, tuple[Study, tuple[Cell, ...]]]:
    """The studies to run, with their cells: those of all sources; `quick`: of the first seed and the cheapest part."""
    wanted: dict[str, tuple[Study, tuple[Cell, ...]]] = {}
    for source in (source for table in tables for source in paper.tables[table].sources if source.run):
        study, before = wanted.get(source.study) or (load_study(source.study), ())
        more = _cells(study, source, quick)
        wanted[source.study] = (study, tuple(cell for cell in study.cells if cell in {*before, *more}))
    if not wanted:
        raise ExegeteError(f"no study of ours answers to {paper.name}:{', '.join(tables)}: {_why(paper, tables)}")
    return wanted


def _why(paper: Paper, tables: Sequence[str]) -> str:
    said = (paper.tables[table] for table in tables)
    return "; ".join(filter(None, (about.impossible or about.not_compared for about in said)))


def _cells(study: Study, source: StudySource, quick: bool) -> tuple[Cell, ...]:
    tasks, models, seeds = list(source.tasks), list(source.models), list(source.seeds)
    if quick:
        tasks, models = list(source.quick.tasks) or tasks, list(source.quick.models) or models
        seeds = (seeds or list(study.seeds))[:1]
    return narrow_cells(study, tasks, models, seeds)


def write_reproduction(found: Reproduction, out: Path, folder: Path, quick: bool = False) -> Path:
    """Write the comparison and what it rests on; returns the table's path."""
    write_csv(out / TABLE, found.frame)
    studies = sorted({line.study for line in found.lines if line.study})
    facts = {
        "exegete": __version__,
        "paper": found.paper.name,
        "tables": list(found.tables),
        "quick": quick,
        "counts": found.counts,
        "studies": {name: _rests_on(folder / name / MANIFEST) for name in studies},
        "command": [Path(word).name if Path(word).is_absolute() else word for word in sys.argv],
    }
    write_json(out / MANIFEST, facts)
    return out / TABLE


def _rests_on(path: Path) -> dict[str, Any]:
    """Which code made the tables of a study, and how many cells it had."""
    facts = read_json(path, "run")
    return {"exegete": facts["exegete"], "code": facts["code"], "cells": len(facts["cells"])}
