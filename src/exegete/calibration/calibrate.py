"""Calibrating: what does every test of the audit say of models whose truth is known? (PROTOCOLS 16)

On the ladder attention decides 0 to 100 % of the logit by construction; a model that was never trained has no attention
worth reading. Each of them is audited as any other: one audit per training, over all of its texts, and one per disjoint
set of `SET` texts, which says how small an audit may be. Tests of a way of training need five seeds: there an audit is
of five trainings. What follows from the verdicts is in `exegete.calibration.votes`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import torch

from exegete.audits.context import Context, context_of
from exegete.audits.criteria import SEEDS_FOR_A_RECIPE, Criteria
from exegete.audits.judge import judge
from exegete.base.errors import UsageError
from exegete.base.files import read_json, write_json, write_text
from exegete.base.names import parse
from exegete.base.noise import stable_seed, uniform
from exegete.base.progress import Progress, silent
from exegete.calibration.votes import ALL, FAITHFUL, NULL, UNFAITHFUL, tally, votes
from exegete.experiments.tests import declared, judged_experiments
from exegete.runs.engine import Engine
from exegete.runs.run import MANIFEST, finished_cells, read_manifest, run_study
from exegete.runs.study import Study, load_study
from exegete.runs.tables import write_csv
from exegete.training.checkpoint import FACTS, is_checkpoint

STILL = 1e-20  # a learning rate up to which float32 weights stay as they were drawn
STUDIES = ("calibration", "null_attention", "null")
KEPT = ("exegete", "code", "python", "libraries", "machine", "seconds")  # of a run's manifest
SET = 200  # texts of a small audit
Rows = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Calibration:
    """What every test said at every rung, and whether it may vote."""

    frame: pl.DataFrame  # test, rung, seeds, texts, n, holds, fails, cannot_tell, share, low, high
    votes: pl.DataFrame  # test, tells_apart, power, false_alarm, difference, low, high, n, n_null, votes, why

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {"calibration": self.frame.to_dicts(), "votes": self.votes.to_dicts()}


class _Part(NamedTuple):
    """One audit: some seeds of a model, and some of their texts."""

    rung: str
    seeds: int
    texts: str
    rows: Rows
    context: Context


def calibrate(runs: Sequence[Path], criteria: Criteria, guarded: bool = True) -> Calibration:
    """Judge complete runs of models whose truth is known, and count.

    Guarded: as the audit, which can't tell anything of a model that only guesses. Otherwise its tests are on their own.
    """
    found = pl.concat([verdicts_of(run, criteria, guarded) for run in runs]) if runs else _no_verdicts()
    missing = {FAITHFUL, UNFAITHFUL} - set(found["rung"])
    if missing:
        raise UsageError(
            "a calibration needs both ends of the ladder, ladder:share=0 and ladder:share=1: add a run of them "
            "(exegete run calibration)"
        )
    frame = tally(found)
    return Calibration(frame, votes(frame))


def rung_of(model: str, study: Study) -> str:
    """What is known of a model: the share that attention decides, or that it was never trained."""
    spec = parse(_spec(model))
    if study.training.lr <= STILL and not is_checkpoint(Path(model)):
        return f"{NULL} {spec.name}"
    if spec.name == "ladder":
        return f"{100 * float(spec.settings.get('share', 1.0)):g} %"
    raise UsageError(
        f"nobody knows what a test should say of {model} in study '{study.name}': a calibration is of models of the "
        f"ladder (ladder:share=0 to 1) and of models that were never trained (lr={STILL:g} or less)"
    )


def _spec(model: str) -> str:
    """The model's settings; those of a checkpoint are in its folder."""
    folder = Path(model)
    return str(read_json(folder / FACTS, "checkpoint")["model"]) if is_checkpoint(folder) else model


def verdicts_of(run: Path, criteria: Criteria, guarded: bool = True) -> pl.DataFrame:
    """A line per audit and test: rung, seeds, texts, test, recipe, verdict."""
    study = Study(**read_manifest(run)["study"])
    rungs = {model: rung_of(model, study) for model in study.models}
    built, judged = study.built_experiments(), judged_experiments()
    paths = {name: run / "tables" / f"{name}.parquet" for name in judged if name in built}
    rows = {name: pl.read_parquet(path) for name, path in paths.items() if path.is_file()}
    if not rows:
        raise UsageError(f"{run} has no experiment that the audit judges: add one of {', '.join(judged)}")
    cells = finished_cells(run, study) if guarded else []
    lines = [
        (
            part.rung,
            part.seeds,
            part.texts,
            test.name,
            part.seeds > 1 or declared()[test.name].about == "recipe",
            test.verdict,
        )
        for part in _parts(rows, study, rungs, cells)
        for test in judge(part.rows, study, criteria, run, pl.DataFrame(), part.context).tests
    ]
    return pl.DataFrame(lines, _no_verdicts().schema, orient="row")


def _no_verdicts() -> pl.DataFrame:
    kinds = {"rung": pl.String, "seeds": pl.Int64, "texts": pl.String, "test": pl.String}
    return pl.DataFrame(schema=kinds | {"recipe": pl.Boolean, "verdict": pl.String})


def _parts(rows: Rows, study: Study, rungs: Mapping[str, str], cells: Sequence[Mapping[str, Any]]) -> Iterator[_Part]:
    """Every seed alone and every group of five seeds, of all texts and of disjoint sets of them."""
    groups = [*((seed,) for seed in study.seeds), *_groups(study.seeds)]
    for (task, model), seeds in product(product(study.tasks, study.models), groups):
        own = _only(rows, pl.col("task") == task, pl.col("model") == model, pl.col("seed").is_in(seeds))
        if own:
            there = [c for c in cells if (c["task"], c["model"]) == (task, model) and c["seed"] in seeds]
            for texts, some in _sets(own, study.split):
                yield _Part(rungs[model], len(seeds), texts, some, context_of(there))


def _groups(seeds: Sequence[int]) -> list[tuple[int, ...]]:
    """Disjoint groups of as many seeds as a claim about a way of training needs; what is left over is left out.

    >>> _groups([0, 1, 2, 3, 4, 5, 6])
    [(0, 1, 2, 3, 4)]
    """
    whole = range(0, len(seeds) - SEEDS_FOR_A_RECIPE + 1, SEEDS_FOR_A_RECIPE)
    return [tuple(seeds[start : start + SEEDS_FOR_A_RECIPE]) for start in whole]


def _sets(rows: Rows, split: str) -> Iterator[tuple[str, Rows]]:
    """All texts; then disjoint sets of `SET`, of experiments that have at least two. Other splits stay whole."""
    yield ALL, rows
    places = {name: _places(frame, split) for name, frame in rows.items()}
    for number in range(max((len(ids) // SET for ids in places.values()), default=0)):
        some = {
            name: _only_texts(rows[name], split, ids[number * SET : (number + 1) * SET])
            for name, ids in places.items()
            if len(ids) >= max(2, number + 1) * SET
        }
        if some:
            yield str(SET), some


def _places(frame: pl.DataFrame, split: str) -> list[int]:
    """The texts of a split in an order that is random and always the same."""
    ids = frame.filter(pl.col("split") == split)["example"].unique().sort()
    drawn = uniform(stable_seed("calibration"), torch.from_numpy(ids.to_numpy().astype("int64")))
    return [int(ids[place]) for place in drawn.argsort().tolist()]


def _only_texts(frame: pl.DataFrame, split: str, examples: Sequence[int]) -> pl.DataFrame:
    return frame.filter((pl.col("split") != split) | pl.col("example").is_in(examples))


def _only(rows: Rows, *where: pl.Expr) -> dict[str, pl.DataFrame]:
    kept = {name: frame.filter(*where) for name, frame in rows.items()}
    return {name: frame for name, frame in kept.items() if not frame.is_empty()}


def run_all(folder: Path, engine: Engine | None = None, progress: Progress = silent) -> list[Path]:
    """Run the ladder and the null models, or go on with them, each in a folder of its name."""
    return [run_study(load_study(name), folder / name, None, engine, progress) for name in STUDIES]


def keep(found: Calibration, runs: Sequence[Path], criteria: Criteria, folder: Path) -> Path:
    """Write tables, figure, votes and, last, where they come from; returns the figure."""
    from exegete.calibration.figure import calibration
    from exegete.page.theme import to_svg

    figure, tests = folder / "calibration.svg", found.votes["test"].to_list()
    write_csv(folder / "calibration.csv", found.frame)
    write_csv(folder / "votes.csv", found.votes)
    write_text(folder / "votes.toml", votes_file(found.votes, criteria))
    write_text(figure, to_svg(calibration(found.frame.filter(pl.col("texts") == ALL), tests)))
    manifests = {run.name: read_manifest(run) for run in runs}
    of_runs = {
        name: {key: told.get(key) for key in KEPT} | {"study": told["study"]} for name, told in manifests.items()
    }
    write_json(folder / MANIFEST, {"criteria": criteria.model_dump(), "runs": of_runs})
    return figure


def votes_file(votes: pl.DataFrame, criteria: Criteria) -> str:
    """The votes as the audit reads them; a test that was not asked at both ends is not named, and stays as it is."""
    lines = [
        "# Which tests may decide an audit: those that tell models that are faithful by construction from those that",
        "# are not, without false alarms. Written by `exegete calibrate`: power and false_alarm are shares of audits",
        "# that say *holds*, n is the number of audits.",
        f"version = {criteria.version}",
        f'date = "{datetime.now(UTC).date().isoformat()}"',
    ]
    for row in votes.filter(pl.col("difference").is_not_null()).sort("test").to_dicts():
        numbers = [f"{name} = {round(row[name], 4)}" for name in ("power", "false_alarm")]
        lines += ["", f"[{row['test']}]", f"votes = {str(row['votes']).lower()}", *numbers]
        lines += [f"n = {row['n'] + row['n_null']}", f"why = {json.dumps(row['why'], ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"
