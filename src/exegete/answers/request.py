"""Requesting: what a user wants audited, as names or as objects, and the study that answers it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from exegete.answers.budget import FEWEST, Budget
from exegete.answers.gate import names_a_grade
from exegete.answers.retraining import RETRAINED
from exegete.base.errors import UsageError
from exegete.base.memo import key_of
from exegete.base.names import Spec, parse
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.test import Goal
from exegete.importance.given import specs_of
from exegete.models.huggingface.prompts import name_with_template
from exegete.runs.engine.contract import Engine
from exegete.runs.objects import (
    AnyModel,
    AnyTask,
    Trained,
    is_by_name,
    name_of_model,
    name_of_scores,
    name_of_task,
    run_folder,
)
from exegete.runs.store import is_address
from exegete.runs.study import Study, check_study, is_about, name_from, read_study
from exegete.tasks.catalogue import task_kind
from exegete.training.checkpoint import as_read, is_language_model, is_of_hub, is_trained
from exegete.training.settings import BY_KIND, TrainingSettings

QUICK_TEXTS = 200  # that a quick audit asks at most, unless told
ENOUGH = 150  # texts that a whole audit asks whatever the machine: fewer seldom settle it
OURS_TAKES = 2.33  # minutes, of the whole audit of one of our own models
DEFAULT, QUICK = "audit", "audit_quick"
HUB_DEFAULT, HUB_QUICK = "audit_hf", "audit_hf_quick"  # of a model of Hugging Face
# Where an experiment names the methods that it compares.
SCORED = {"agreement": "against", "faithfulness": "methods", "plausibility": "methods"}
# What is asked, besides, of kinds of tasks that the default has not.
ALSO: dict[str, dict[str, Any]] = {
    "pair": {
        "name": "supporting_facts",
        "texts": 200,
        "methods": ["attention", "gradient:norm=l2", "gradient_x_input", "occlusion", "random"],
    },
}
MODEL: dict[str, str] = {"pair": "pair", "translation": "translator"}  # for kinds of tasks that the default has not


@dataclass(frozen=True)
class AuditRequest:
    """What a user wants audited, and how; without a task and a model, a study, or the default audit.

    `exegete.audit`, the command line and the explorer hand one to `exegete.answers.audit.run_audit`.
    """

    model: AnyModel | None = None
    task: AnyTask | None = None
    study: str | None = None  # a file or a name
    quick: bool = False
    scores: Sequence[Any] = ()  # frames, or files, with scores that another tool computed
    seeds: Sequence[int] | None = None
    retrain: bool = False  # of a model of Hugging Face: ask what needs further fine-tunings, too
    goal: Goal = "faithful"
    criteria: Path | None = None
    fail_on: str | None = None  # tests and grades, separated by commas
    texts: int | None = None  # that what decides is asked of, at most
    minutes: float | None = None  # that the whole may take
    out: str | Path | None = None  # a folder or an address
    engine: str | Engine | None = None
    workers: int | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.study is not None and (self.task is not None or self.model is not None):
            raise UsageError("give a study, or a task and a model, not both")
        if isinstance(self.scores, str) or not isinstance(self.scores, Sequence):
            raise UsageError("scores is a list of frames or files: write scores=[…]")
        if self.seeds is not None and not len(self.seeds):
            raise UsageError("seeds is empty: an audit needs one or more, as seeds=[0]")
        if self.fail_on is not None and names_a_grade(self.fail_on) and self.goal != "faithful":
            raise UsageError(f"--fail-on {self.fail_on}: attention is graded for the goal faithful, not {self.goal}")
        if self.texts is not None and self.texts < FEWEST:
            raise UsageError(f"texts={self.texts} are too few for any answer: ask {FEWEST} or more")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise UsageError(f"minutes={self.minutes} is no time: give a number above 0")

    def budget(self, study: Study) -> Budget | None:
        """How far the study that answers goes on asking; one of somebody's own asks what it says, unless told."""
        if self.study is not None and self.texts is None and self.minutes is None:
            return None
        hub = is_of_hub(study.models[0])
        minutes = (1.0 if self.quick else 10.0) if hub else (1.0 if self.quick else OURS_TAKES)
        most = self.texts or (QUICK_TEXTS if self.quick else None)
        by_texts = self.texts is not None and self.minutes is None
        at_least = 0 if self.quick or self.minutes else ENOUGH
        return Budget(most, 0.0 if by_texts else self.minutes or minutes, self.quick, at_least)

    @property
    def place(self) -> str | Path:
        """Where the run is: as named, in the folder of the study where all are names, or in one for these objects."""
        if self.out is not None:
            return self.out if is_address(self.out) else Path(self.out)
        things = (self.model, self.task, *self.scores)
        if all(thing is None or isinstance(thing, str | Path) for thing in things):
            return Path("runs") / study_for(self).name
        return run_folder(None, QUICK if self.quick else DEFAULT, *things, self.seeds, self.retrain)


def study_for(request: AuditRequest, run: Path = Path()) -> Study:
    """The study that answers, by names that a run in this folder finds again."""
    model = None if request.model is None else name_of_model(request.model, request.task or "", run)
    task = None if request.task is None else name_of_task(request.task, run)
    study = _study(request, model, task, tuple(name_of_scores(each, run) for each in request.scores))
    changed: dict[str, Any] = {} if request.seeds is None else {"seeds": tuple(request.seeds)}
    if isinstance(request.model, Trained) and is_by_name(request.model, request.task or ""):
        settings = TrainingSettings.model_validate(request.model.training)
        changed = {
            "seeds": tuple(request.seeds or (request.model.seed,)),
            "training": settings,
            "kinds": {},
            "trained": (),
        }
    return check_study(study.model_copy(update=changed)) if changed else study


def _built_in(model: str | None, quick: bool) -> str:
    """The name of the audit that fits a model."""
    if model is not None and is_of_hub(model):
        return HUB_QUICK if quick else HUB_DEFAULT
    return QUICK if quick else DEFAULT


def _study(request: AuditRequest, model: str | None, task: str | None, scores: tuple[str, ...]) -> Study:
    """The study of a task and a model that are named, before what an object says of its own training."""
    if request.quick and request.study is not None:
        raise UsageError(
            "--quick is for the built-in audit: give your study fewer texts, seeds and experiments instead"
        )
    if request.retrain and (request.quick or model is None or not is_of_hub(model)):
        raise UsageError("--retrain is for the whole audit of a model of Hugging Face: others ask it by default")
    if request.retrain and model is not None and is_language_model(model):
        raise UsageError("--retrain trains others beside a model, and a language model is asked as it is: leave it out")
    study = read_study(request.study or _built_in(model, request.quick))
    if scores:
        study = with_scores(study, scores)
    if task is None and model is None:
        return check_study(study)
    tasks: tuple[str, ...] = (task or study.tasks[0],)
    kind = task_kind(tasks[0])
    models = (model or MODEL.get(kind, study.models[0]),)
    tasks = tuple(as_read(task, models[0]) for task in tasks)
    hub = is_of_hub(models[0])
    if kind == "classification" and not is_trained(models[0]) and (request.retrain if hub else not request.quick):
        tasks = (*tasks, with_planted_words(tasks[0]))  # what is trained already can't be trained on planted words
    also = [*([ALSO[kind]] if kind in ALSO else []), *(needing_training() if request.retrain else [])]
    experiments = tuple(_entry(entry, tasks) for entry in (*study.experiments, *also))
    return check_study(
        study.model_copy(
            update={
                "name": _name(study.name, tasks, models, scores),
                "title": f"{name_with_template(models[0])} on {tasks[0]}",
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


def _name(study: str, tasks: tuple[str, ...], models: tuple[str, ...], scores: tuple[str, ...]) -> str:
    """Of its own for every task, model and file of scores."""
    kind, _, place = parse(tasks[0]).name.partition(":")
    own = PurePath(place).name if PurePath(place).is_absolute() else place  # its folders are nobody's business
    plain = name_from(f"{kind}_{own}" if place else kind)
    return f"{study}_{plain}_{key_of(tasks=tasks, models=models, scores=scores)[:6]}"


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


def with_planted_words(task: str) -> str:
    """A task's name, with planted words that decide the class."""
    spec = parse(task)
    return str(Spec(spec.name, spec.settings | {"planted": "token"}))
