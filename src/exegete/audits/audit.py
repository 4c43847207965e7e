"""Auditing: run what the audit needs, then judge it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import polars as pl

from exegete.audits.context import context_of
from exegete.audits.criteria import kept_criteria, load_criteria
from exegete.audits.judge import judge
from exegete.audits.kept import judgement_key, keep_judgement, kept_judgement
from exegete.audits.retrained import RETRAINED
from exegete.audits.scorecard import Audit
from exegete.base.errors import UsageError
from exegete.base.files import write_json
from exegete.base.names import Spec, parse
from exegete.base.parquet import read_parquet
from exegete.base.progress import Progress, silent
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Experiment, Streaming
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import declared, judged_experiments
from exegete.importance.given import specs_of
from exegete.runs.engine.contract import Engine
from exegete.runs.keys import key_of
from exegete.runs.naming import names_in, renamed
from exegete.runs.objects import (
    AnyModel,
    AnyTask,
    Trained,
    engine_for,
    folder_of,
    is_by_name,
    name_of_model,
    name_of_scores,
    name_of_task,
)
from exegete.runs.run import finished_cells, run_study
from exegete.runs.study import Study, checked, is_about, name_from, read_study
from exegete.runs.tables import write_csv
from exegete.tasks.catalogue import kind_of
from exegete.training.checkpoint import as_read, is_of_hub, is_trained
from exegete.training.settings import BY_KIND, TrainingSettings

DEFAULT, QUICK = "audit", "audit_quick"
HUB_DEFAULT, HUB_QUICK = "audit_hf", "audit_hf_quick"  # of a model of Hugging Face
# Where an experiment names the methods that it compares.
SCORED = {"agreement": "against", "faithfulness": "methods", "plausibility": "methods"}
CRITERIA = "criteria.json"
# What is asked, besides, of kinds of tasks that the default has not.
ALSO: dict[str, dict[str, Any]] = {
    "pair": {
        "name": "supporting_facts",
        "texts": 200,
        "methods": ["attention", "gradient:norm=l2", "gradient_x_input", "occlusion", "random"],
    },
}
MODEL: dict[str, str] = {"pair": "pair", "translation": "translator"}  # for kinds of tasks that the default has not


class AuditRequest(NamedTuple):
    """What a user wants audited: a study's file or name, or the default one with another task or model."""

    source: str | None = None
    task: str | None = None
    model: str | None = None
    quick: bool = False
    scores: tuple[str, ...] = ()  # files with scores that another tool computed
    retrain: bool = False  # of a model of Hugging Face: ask what needs further fine-tunings, too

    @property
    def built_in(self) -> str:
        """The name of the audit that fits the model."""
        if self.model is not None and is_of_hub(self.model):
            return HUB_QUICK if self.quick else HUB_DEFAULT
        return QUICK if self.quick else DEFAULT


def study_for(asking: AuditRequest) -> Study:
    """The study that answers."""
    if asking.quick and asking.source is not None:
        raise UsageError(
            "--quick is for the built-in audit: give your study fewer texts, seeds and experiments instead"
        )
    if asking.retrain and (asking.quick or asking.model is None or not is_of_hub(asking.model)):
        raise UsageError("--retrain is for the whole audit of a model of Hugging Face: others ask it by default")
    study = read_study(asking.source or asking.built_in)
    if asking.scores:
        study = with_scores(study, asking.scores)
    if asking.task is None and asking.model is None:
        return checked(study)
    tasks: tuple[str, ...] = (asking.task or study.tasks[0],)
    kind = kind_of(tasks[0])
    models = (asking.model or MODEL.get(kind, study.models[0]),)
    tasks = tuple(as_read(task, models[0]) for task in tasks)
    hub = is_of_hub(models[0])
    if kind == "classification" and not is_trained(models[0]) and (asking.retrain if hub else not asking.quick):
        tasks = (*tasks, planted(tasks[0]))  # what is trained already can't be trained on planted words
    also = [*([ALSO[kind]] if kind in ALSO else []), *(needing_training() if asking.retrain else [])]
    experiments = tuple(_entry(entry, tasks) for entry in (*study.experiments, *also))
    return checked(
        study.model_copy(
            update={
                "name": _name(study.name, asking, tasks, models),
                "title": f"{models[0]} on {tasks[0]}",
                "tasks": tasks,
                "models": models,
                "experiments": experiments,
                "kinds": {kind: BY_KIND[kind]} if kind in BY_KIND else {},
            }
        )
    )


def needing_training() -> list[dict[str, Any]]:
    """What our own audit asks that needs other trainings of a model."""
    return [entry for entry in read_study(DEFAULT).experiments if entry["name"] in RETRAINED]


def _name(study: str, asking: AuditRequest, tasks: tuple[str, ...], models: tuple[str, ...]) -> str:
    """Of its own for every task, model and file of scores."""
    kind, _, place = parse(tasks[0]).name.partition(":")
    own = PurePath(place).name if PurePath(place).is_absolute() else place  # its folders are nobody's business
    plain = name_from(f"{kind}_{own}" if place else kind)
    return f"{study}_{plain}_{key_of(tasks=tasks, models=models, scores=asking.scores)[:6]}"


def with_scores(study: Study, files: Sequence[str]) -> Study:
    """The study with scores of another tool as further methods, wherever methods are compared."""
    given = [spec for file in files for spec in specs_of(file)]
    entries = [
        entry | {field: [*entry.get(field, _defaults(entry["name"], field)), *given]}
        if (field := SCORED.get(entry["name"])) is not None
        else entry
        for entry in study.experiments
    ]
    return study.model_copy(
        update={"experiments": tuple(entries), "name": f"{study.name}_{key_of(scores=tuple(files))[:6]}"}
    )


def _defaults(experiment: str, field: str) -> tuple[str, ...]:
    """The methods that an experiment compares where a study names none."""
    return tuple(getattr(EXPERIMENTS.make(experiment), field))


def _entry(entry: dict[str, Any], tasks: tuple[str, ...]) -> dict[str, Any]:
    """An experiment of the default audit; one that is about none of the tasks is asked, and says why it can't be."""
    if any(is_about(entry, task) for task in tasks):
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
    goal: Goal = "faithful",
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Audit:
    """Run (or resume) a study and judge what it found, for a goal."""
    judged = judged_experiments()
    if not set(judged) & set(study.built_experiments()):
        raise UsageError(
            f"study '{study.name}' has no experiment that the audit judges: add one of {', '.join(judged)}"
        )
    wanted = load_criteria(criteria)
    run_study(study, out, None, engine or engine_for(study), progress)
    write_json(out / CRITERIA, wanted.model_dump())
    found = judge_run(study, out, goal, keep=True)
    write_csv(out / "tables" / "scorecard.csv", found.scorecard)
    return found


def judge_run(study: Study, out: Path, goal: Goal = "faithful", *, keep: bool = False) -> Audit:
    """Judge a complete run by the criteria that it was audited with, or else by ours; perhaps keep what was found."""
    kept = out / CRITERIA
    criteria = kept_criteria(kept) if kept.is_file() else load_criteria()
    tables = {name: out / "tables" / f"{name}.parquet" for name in study.built_experiments()}
    there = {name: path for name, path in tables.items() if path.is_file()}
    first = "agreement" if "agreement" in there else next(iter(there))
    frame = read_parquet(out / "tables" / f"{first}_summary.parquet")
    key = judgement_key(out, criteria, goal)
    known = kept_judgement(out, key, frame)
    if known is not None:
        return known
    built = study.built_experiments()
    rows = {name: _judged_rows(name, built[name], path) for name, path in there.items()}
    cells = renamed(finished_cells(out, study), names_in(out))
    found = judge(rows, study, criteria, out, frame, context_of(cells, goal))
    if keep:
        keep_judgement(out, key, found)
    return found


def _judged_rows(name: str, experiment: Experiment, path: Path) -> pl.DataFrame:
    """The rows of an experiment that tests need: all, unless it has many, says which, and every test of it is ours."""
    ours = all(str(test.statistic).startswith("exegete.") for test in declared().values() if name in test.experiments)
    if isinstance(experiment, Streaming) and ours:
        return pl.scan_parquet(path, glob=False).filter(experiment.judged).collect()
    return read_parquet(path)


@dataclass(frozen=True)
class Wanted:
    """What is audited, as names or as objects; without a task and a model, a study, or the default audit."""

    model: AnyModel | None = None
    task: AnyTask | None = None
    study: str | None = None
    quick: bool = False
    scores: Sequence[Any] = ()  # frames, or files
    seeds: Sequence[int] | None = None
    retrain: bool = False

    def __post_init__(self) -> None:
        if self.study is not None and (self.task is not None or self.model is not None):
            raise UsageError("give a study, or a task and a model, not both")
        if isinstance(self.scores, str) or not isinstance(self.scores, Sequence):
            raise UsageError("scores is a list of frames or files: write scores=[…]")
        if self.seeds is not None and not len(self.seeds):
            raise UsageError("seeds is empty: an audit needs one or more, as seeds=[0]")

    def folder(self, out: str | Path | None) -> Path:
        """The run folder: as named, that of the study where all are names, or one of its own for these objects."""
        things = (self.model, self.task, *self.scores)
        if out is None and all(thing is None or isinstance(thing, str | Path) for thing in things):
            return Path("runs") / self.named(Path()).name
        return folder_of(out, QUICK if self.quick else DEFAULT, *things, self.seeds, self.retrain)

    def named(self, run: Path) -> Study:
        """The study that answers, by names that a run in this folder finds again."""
        task = None if self.task is None else name_of_task(self.task, run)
        model = None if self.model is None else name_of_model(self.model, self.task or "", run)
        scores = tuple(name_of_scores(each, run) for each in self.scores)
        study = study_for(AuditRequest(self.study, task, model, self.quick, scores, self.retrain))
        changed: dict[str, Any] = {} if self.seeds is None else {"seeds": tuple(self.seeds)}
        if isinstance(self.model, Trained) and is_by_name(self.model, self.task or ""):
            settings = TrainingSettings.model_validate(self.model.training)
            changed = {
                "seeds": tuple(self.seeds or (self.model.seed,)),
                "training": settings,
                "kinds": {},
                "trained": (),
            }
        return checked(study.model_copy(update=changed)) if changed else study
