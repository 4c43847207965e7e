"""Auditing: run what the audit needs, then judge it."""

from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import UsageError
from exegete.base.files import read_json, write_json
from exegete.base.names import Spec, parse, validate
from exegete.base.progress import Progress, silent
from exegete.studies.asking import ASK
from exegete.studies.audit import Audit, Criteria, load_criteria
from exegete.studies.engine import LocalEngine
from exegete.studies.judging import judge
from exegete.studies.keys import key_of
from exegete.studies.run import run_study
from exegete.studies.study import Study, checked, is_asked, load_study
from exegete.tasks.catalogue import kind_of
from exegete.training.checkpoint import is_checkpoint
from exegete.training.settings import BY_KIND

DEFAULT = "audit"
CRITERIA = "criteria.json"
MODEL: dict[str, str] = {"pair": "pair", "translation": "translator"}  # for kinds of tasks that the default has not


def study_for(source: str | None, task: str | None, model: str | None) -> Study:
    """A study from a file; or the default one, with another task or model."""
    study = load_study(source or DEFAULT)
    if task is None and model is None:
        return study
    tasks: tuple[str, ...] = (task or study.tasks[0],)
    kind = kind_of(tasks[0])
    models = (model or MODEL.get(kind, study.models[0]),)
    if kind == "classification" and not is_checkpoint(Path(models[0])):
        tasks = (*tasks, planted(tasks[0]))  # what is trained already can't be trained on planted words
    experiments = tuple(_entry(entry, tasks) for entry in study.experiments)
    name = f"audit_{parse(tasks[0]).name.replace(':', '_').replace('/', '_')}_{key_of(tasks=tasks, models=models)[:6]}"
    return checked(
        study.model_copy(
            update={
                "name": name,
                "title": f"{models[0]} on {tasks[0]}",
                "tasks": tasks,
                "models": models,
                "experiments": experiments,
                "kinds": {kind: BY_KIND[kind]} if kind in BY_KIND else {},
            }
        )
    )


def _entry(entry: dict[str, Any], tasks: tuple[str, ...]) -> dict[str, Any]:
    """An experiment of the default audit; one that is about none of the tasks is asked, and says why it can't be."""
    if any(is_asked(entry, task) for task in tasks):
        return entry
    return {key: value for key, value in entry.items() if key != "tasks"}


def planted(task: str) -> str:
    """The same task with planted words that decide the class."""
    spec = parse(task)
    return str(Spec(spec.name, spec.settings | {"planted": "token"}))


def audit_study(
    study: Study,
    out: Path,
    criteria: Path | None = None,
    engine: LocalEngine | None = None,
    progress: Progress = silent,
) -> Audit:
    """Run (or resume) a study and judge what it found."""
    if not set(ASK) & set(study.built_experiments()):
        raise UsageError(f"study '{study.name}' has no experiment that the audit judges: add one of {', '.join(ASK)}")
    wanted = load_criteria(criteria)
    run_study(study, out, None, engine, progress)
    write_json(out / CRITERIA, wanted.model_dump())
    return judge_run(study, out)


def judge_run(study: Study, out: Path) -> Audit:
    """Judge a complete run by the criteria that it was audited with, or else by ours."""
    kept = out / CRITERIA
    criteria = (
        validate(Criteria, read_json(kept, "criteria"), f"criteria in {kept}") if kept.is_file() else load_criteria()
    )
    tables = {name: out / "tables" / f"{name}.parquet" for name in study.built_experiments()}
    rows = {name: pl.read_parquet(path) for name, path in tables.items() if path.is_file()}
    first = "agreement" if "agreement" in rows else next(iter(rows))
    return judge(rows, study, criteria, out, pl.read_parquet(out / "tables" / f"{first}_summary.parquet"))


def audit(model: str, task: str, out: str | Path | None = None, progress: Progress = silent) -> Audit:
    """The Python door: `exegete.audit("bilstm:vectors=glove-50", "rotten_tomatoes")`.

    A checkpoint folder is a model too.
    """
    study = study_for(None, task, model)
    return audit_study(study, Path(out) if out else Path("runs") / study.name, progress=progress)
