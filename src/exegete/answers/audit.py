"""Audit: run what the audit needs, then judge it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import polars as pl

from exegete.answers.budget import Asking, Budget, begin_study
from exegete.answers.context import context_of
from exegete.answers.criteria import criteria_of_run, load_criteria
from exegete.answers.gate import named_tests, refuse_unanswerable
from exegete.answers.judge import judge
from exegete.answers.judgement_cache import judgement_key, keep_judgement, read_judgement
from exegete.answers.request import AuditRequest, study_for
from exegete.answers.scorecard import Audit
from exegete.base.errors import UsageError
from exegete.base.parquet import read_parquet
from exegete.base.progress import Progress, silent
from exegete.experiments.common.contract import Experiment, Streaming
from exegete.experiments.common.margins import CRITERIA
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests, judged_experiments
from exegete.runs.engine.contract import Engine
from exegete.runs.names import names_in, rename_cells
from exegete.runs.objects import engine_for
from exegete.runs.remote import work_on
from exegete.runs.run import finished_cells, run_study, study_of
from exegete.runs.study import Study, on
from exegete.runs.tables import write_csv

Listening = Callable[[Study, Path, Engine], AbstractContextManager[Progress]]  # who hears of a study in a run folder


class Audited(NamedTuple):
    """What was found, and where."""

    audit: Audit
    run: Path
    needed: tuple[str, ...]  # tests that must hold: those of `fail_on`


@contextmanager
def run_audit(request: AuditRequest, listening: Listening) -> Iterator[Audited]:
    """Run (or resume) what is requested, and judge it; at an address, what is written to the run in the block is put
    there, too.

    What can be refused is refused before anything is read or trained. The gate (`exegete.answers.gate.check_gate`) is
    for after the block: a run is kept whatever it found.
    """
    load_criteria(request.criteria)
    with work_on(request.place) as run:
        study = on(study_for(request, run), request.device)
        needed = named_tests(request.fail_on, study) if request.fail_on is not None else ()  # a plugin may have its own
        refuse_unanswerable(needed, study)
        engine = engine_for(study, request.engine, request.workers)
        with listening(study, run, engine) as progress:
            found = audit_study(study, run, request.criteria, request.goal, engine, progress, request.budget(study))
        yield Audited(found, run, needed)


def audit_study(
    study: Study,
    out: Path,
    criteria: Path | None = None,
    goal: Goal = "faithful",
    engine: Engine | None = None,
    progress: Progress = silent,
    budget: Budget | None = None,
) -> Audit:
    """Run (or resume) a study and judge what it found, for a goal; within a budget, go on until it is settled."""
    judged = judged_experiments()
    if not set(judged) & set(study.built_experiments()):
        raise UsageError(
            f"study '{study.name}' has no experiment that the audit judges: add one of {', '.join(judged)}"
        )
    wanted = load_criteria(criteria)
    asking = Asking(budget, wanted, progress) if budget is not None and goal == "faithful" else None
    study = study if budget is None else begin_study(study, budget, progress)
    engine = engine or engine_for(study)
    study = study_of(run_study(study, out, None, engine, progress, criteria=wanted.model_dump(), more=asking))
    found = judge_run(study, out, goal, keep=True)
    write_csv(out / "tables" / "scorecard.csv", found.scorecard)
    return found


def judge_run(study: Study, out: Path, goal: Goal = "faithful", *, keep: bool = False) -> Audit:
    """Judge a complete run by the criteria that it was audited with, or else by ours; perhaps keep what was found."""
    kept = out / CRITERIA
    criteria = criteria_of_run(kept) if kept.is_file() else load_criteria()
    tables = {name: out / "tables" / f"{name}.parquet" for name in study.built_experiments()}
    there = {name: path for name, path in tables.items() if path.is_file()}
    first = "agreement" if "agreement" in there else next(iter(there))
    frame = read_parquet(out / "tables" / f"{first}_summary.parquet")
    key = judgement_key(out, criteria, goal)
    known = read_judgement(out, key, frame)
    if known is not None:
        return known
    built = study.built_experiments()
    rows = {name: _judged_rows(name, built[name], path) for name, path in there.items()}
    cells = rename_cells(finished_cells(out, study), names_in(out))
    found = judge(rows, study, criteria, out, frame, context_of(cells, goal))
    if keep:
        keep_judgement(out, key, found)
    return found


def _judged_rows(name: str, experiment: Experiment, path: Path) -> pl.DataFrame:
    """The rows of an experiment that tests need: all, unless it has many, says which, and every test of it is ours."""
    ours = all(str(test.statistic).startswith("exegete.") for test in all_tests().values() if name in test.experiments)
    if isinstance(experiment, Streaming) and ours:
        return pl.scan_parquet(path, glob=False).filter(experiment.judged).collect()
    return read_parquet(path)
