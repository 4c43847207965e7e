"""A study of what people have in memory, or of names: tasks × models × seeds × experiments (`exegete.Study`)."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from exegete.base.arguments import fits_kind
from exegete.base.errors import UsageError
from exegete.base.heartbeat import Heartbeat
from exegete.base.names import validate
from exegete.base.progress import Progress
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Experiment
from exegete.runs.engine.contract import Engine
from exegete.runs.objects import (
    AnyModel,
    AnyTask,
    Trained,
    describe_object,
    engine_for,
    is_by_name,
    name_of_model,
    name_of_task,
    run_folder,
)
from exegete.runs.remote import work_on
from exegete.runs.results import Run
from exegete.runs.run import read_manifest, run_study
from exegete.runs.store import is_address
from exegete.runs.study import Study, check_study, on


@dataclass(frozen=True)
class StudyOfObjects:
    """Tasks × models × seeds × experiments, as names or as objects."""

    tasks: Sequence[AnyTask]
    models: Sequence[AnyModel]
    experiments: Sequence[Experiment | str | Mapping[str, Any]]
    seeds: Sequence[int] = (0,)
    split: str = "test"
    training: Mapping[str, Any] = field(default_factory=dict)
    name: str = "study"
    plugins: Sequence[str] = ()

    def __post_init__(self) -> None:
        for what, given in (("tasks", self.tasks), ("models", self.models), ("experiments", self.experiments)):
            if not isinstance(given, list | tuple):
                raise UsageError(f"{what} is a list, not {describe_object(given)}: write {what}=[…]")
            if not given:
                raise UsageError(f"{what} is empty: a study needs one or more")
        if not fits_kind(self.seeds, Sequence[int]):
            raise UsageError(f"seeds is a list of whole numbers, not {describe_object(self.seeds)}: write seeds=[0, 1]")

    def run(
        self,
        out: str | Path | None = None,
        *,
        engine: str | Engine | None = None,
        workers: int | None = None,
        device: str | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Run it, or go on with it, in a folder; without `progress`, a line every half minute says how far it is."""
        things = (*self.tasks, *self.models, *self.experiments, self.seeds, self.training)
        with work_on(out if is_address(out) else run_folder(out, self.name, *things)) as folder:
            study = on(self.named(folder), device)
            with Heartbeat() if progress is None else nullcontext(progress) as tell:
                run_study(study, folder, None, engine_for(study, engine, workers), tell)
            for failure in read_manifest(folder).get("failures", ()):
                warnings.warn(failure, stacklevel=2)
        return Run(folder, study)

    def named(self, run: Path) -> Study:
        """The study by names that a run in this folder finds again."""
        by_name = [model for model in self.models if isinstance(model, Trained) and self._fits(model)]
        seeds = tuple(dict.fromkeys(model.seed for model in by_name)) or tuple(self.seeds)
        training = by_name[0].training if by_name else dict(self.training)
        if any((model.seed,) != seeds or model.training != training for model in by_name):
            raise UsageError("the trained models differ in seed or training: give each a study of its own")
        said = {
            "name": self.name,
            "tasks": tuple(name_of_task(task, run) for task in self.tasks),
            "models": tuple(name_of_model(model, self.tasks[0], run) for model in self.models),
            "seeds": seeds,
            "split": self.split,
            "training": training,
            "plugins": tuple(self.plugins),
            "experiments": tuple(entry_of(experiment) for experiment in self.experiments),
        }
        return check_study(validate(Study, said, f"study '{self.name}'"))

    def _fits(self, model: Trained) -> bool:
        return all(is_by_name(model, task) for task in self.tasks)


def entry_of(experiment: Experiment | str | Mapping[str, Any]) -> dict[str, Any]:
    """An experiment as a study writes it: its name, and the settings that differ from the usual ones."""
    if isinstance(experiment, str | Mapping):
        return {"name": experiment} if isinstance(experiment, str) else dict(experiment)
    kind = type(experiment)
    places = (kind, f"{kind.__module__}:{kind.__name__}")
    names = [name for name in EXPERIMENTS if EXPERIMENTS[name].place in places]
    if not names:
        raise UsageError(
            f"an experiment is one of `exegete ls experiments`, by name or as an object, not {kind.__name__}"
        )
    usual = kind()
    settings = {f.name: getattr(experiment, f.name) for f in fields(experiment)}  # type: ignore[arg-type]
    return {"name": names[0]} | {key: value for key, value in settings.items() if value != getattr(usual, key)}
