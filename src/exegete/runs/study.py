"""Study: tasks × models × seeds × experiments, written in a TOML file."""

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from exegete.base.device import for_questions
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import parse, validate
from exegete.base.progress import Progress, silent
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Experiment
from exegete.models.settings import HUB, MODELS, task_kinds
from exegete.runs.names import short_names
from exegete.tasks.catalogue import task_kind
from exegete.tasks.example import Kind
from exegete.training.settings import TrainingSettings, by_default

LONGEST = 80  # letters of a name that is made: a folder's has 255 at most


class Cell(NamedTuple):
    """One model of a study: what it learns, what it is, and its seed."""

    task: str
    model: str
    seed: int

    def __str__(self) -> str:
        names = short_names((self.task, self.model))
        task, model = (names.get(each, each) for each in (self.task, self.model))
        return f"{task} · {model} · seed {self.seed}"


def name_from(text: str, longest: int = LONGEST) -> str:
    """A name for a study, and so for a folder, from any text.

    >>> name_from("file_my (1) 😀.csv"), name_from("(😀)")
    ('file_my_1_.csv', '_')
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:longest] or "_"


class Study(BaseModel):
    """What to run; every key of the TOML file is a field here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str = ""
    paper: str | None = None  # whose published numbers stand beside ours
    notes: tuple[str, ...] = ()  # what differs from the paper, in sentences
    tasks: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[Annotated[int, Field(ge=-(2**63), lt=2**63)], ...] = Field((0,), min_length=1)  # what tables hold
    split: str = "test"
    engine: str = "local"  # what runs it, unless the command says otherwise: local, ray, ray:ADDRESS
    device: str | None = None  # where models compute, unless the command says otherwise: cpu, cuda, cuda:N or auto
    plugins: tuple[str, ...] = ()  # modules to import first: they name importances of your own
    training: TrainingSettings = TrainingSettings()
    kinds: dict[Kind, dict[str, Any]] = Field(default_factory=dict)  # training settings that differ by kind of task
    trained: tuple[dict[str, Any], ...] = ()  # those that differ by task and model, whose names match patterns
    experiments: tuple[dict[str, Any], ...] = Field(({"name": "agreement"},), min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> "Study":
        if name_from(self.name, len(self.name)) != self.name:
            raise ValueError(f"a study's name has letters, digits, '_', '-' and '.' only: rename '{self.name}'")
        names = [entry.get("name") for entry in self.experiments]
        for kind, given in (("task", self.tasks), ("model", self.models), ("seed", self.seeds), ("experiment", names)):
            twice = next((thing for thing in given if given.count(thing) > 1), None)
            if twice is not None:
                raise ValueError(f"{kind} '{twice}' is there twice: name it once")
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The whole grid; where tasks are of several kinds, every model with those of its own kind."""
        kinds = {task: task_kind(task) for task in self.tasks}
        several = len(set(kinds.values())) > 1
        return tuple(
            Cell(task, model, seed)
            for task in self.tasks
            for model in self.models
            if not several or fits_task(model, kinds[task])
            for seed in self.seeds
        )

    def training_for(self, task: str, model: str = "") -> TrainingSettings:
        """How a model is trained on a task: as those of its kind are by default, but for what the study says."""
        kind = task_kind(task)
        said = {name: getattr(self.training, name) for name in self.training.model_fields_set}
        given = by_default(kind, model) | said | self.kinds.get(kind, {})
        for entry in (entry for entry in self.trained if is_about(entry, task) and is_about(entry, model, "models")):
            given |= {name: value for name, value in entry.items() if name not in ("tasks", "models")}
        settings: TrainingSettings = validate(TrainingSettings, given, "training")
        return settings

    def built_experiments(self, task: str | None = None) -> dict[str, Experiment]:
        """Every experiment with its settings, by name; of one task, those that are asked about it."""
        asked = [entry for entry in self.experiments if task is None or is_about(entry, task)]
        return {entry.get("name", ""): _experiment(entry) for entry in asked}


class FoundRows(NamedTuple):
    """Where an experiment's rows are, what their scores took, and what must be said of these."""

    experiment: str
    folders: dict[str, str]  # by split
    costs: list[dict[str, Any]]  # by importance
    notes: list[str]


class Work(NamedTuple):
    """A cell in its study and run, and who is told how far it is."""

    run: Path
    study: Study
    cell: Cell
    code: str  # of what is about to run, taken before anything ran
    progress: Progress = silent
    part: str = ""  # the experiment or the companion that is at work, if one is
    companion: str = ""  # the only companion that is trained, if one is
    split: str = ""  # the only split that is asked about, if one is
    shard: int | None = None  # the only shard of its texts, if one is
    seal: str = ""  # of all that determines what the cell finds, if that can be told
    found: tuple[FoundRows, ...] = ()  # by pieces of it that are done
    begun: str = ""  # the command that it is part of: what one of its pieces has loaded serves the others
    halves: bool = False  # whether texts are asked about in two halves: together, they took too much memory
    address: str = ""  # of the run, whose folder is a copy of what is there

    def __str__(self) -> str:
        shard = "" if self.shard is None else str(self.shard + 1)
        return " · ".join(filter(None, [str(self.cell), self.part, self.companion, self.split, shard]))

    def tell(self, label: str, done: int, total: int) -> None:
        """Report on a part of this cell's work."""
        self.progress(" · ".join(filter(None, [str(self.cell), self.split or self.part, label])), done, total)


def on(study: Study, device: str | None) -> Study:
    """The study on a device, if one is named; one that is not here is told before anything is read."""
    for_questions(device or study.device)
    return study if device is None else study.model_copy(update={"device": device})


def fits_task(model: str, kind: Kind) -> bool:
    """Whether a model is for a kind of task; of a checkpoint, its folder doesn't tell."""
    name = parse(model).name
    return name not in MODELS or kind in task_kinds(name)


def is_about(entry: dict[str, Any], name: str, field: str = "tasks") -> bool:
    """Whether an entry of a study is about a task (or a model): about all, or those that match (`!` says: all but)."""
    patterns = entry.get(field)
    if patterns is None:
        return True
    if not isinstance(patterns, (list, tuple)):
        of = f"experiment '{entry['name']}'" if "name" in entry else "[[trained]]"
        raise UsageError(f"{of}: {field} is a list of patterns, not {patterns!r}")
    return any(fnmatch(name, str(p).lstrip("!")) != str(p).startswith("!") for p in patterns)


def _experiment(entry: dict[str, Any]) -> Experiment:
    settings = dict(entry)
    if "name" not in settings:
        raise UsageError('an experiment needs a name: write [[experiments]] and name = "agreement"')
    name = settings.pop("name")
    settings.pop("tasks", None)
    built: Experiment = validate(EXPERIMENTS[name].load(), settings, f"experiment '{name}'")
    if built.texts is not None and built.texts < 1:
        raise UsageError(f"experiment '{name}': texts is 1 or more, not {built.texts}")
    return built


def narrow_cells(study: Study, tasks: list[str], models: list[str], seeds: list[int]) -> tuple[Cell, ...]:
    """The cells whose task and model match a pattern (`sst*`, `*sparsemax*`) and whose seed is listed.

    No pattern: all.
    """
    for kind, patterns, known in (("task", tasks, study.tasks), ("model", models, study.models)):
        for pattern in patterns:
            if not any(_matches(name, pattern) for name in known):
                raise unknown(f"{kind} of study '{study.name}'", pattern, known)
    for seed in set(seeds) - set(study.seeds):
        raise UsageError(f"study '{study.name}' has no seed {seed}: choose from {', '.join(map(str, study.seeds))}")
    return tuple(
        cell
        for cell in study.cells
        if (not tasks or any(_matches(cell.task, p) for p in tasks))
        and (not models or any(_matches(cell.model, p) for p in models))
        and (not seeds or cell.seed in seeds)
    )


def _matches(name: str, pattern: str) -> bool:
    """`sst` names the task `sst:lower=false` too."""
    return fnmatch(name, pattern) or fnmatch(name.partition(":")[0], pattern)


def built_in_studies() -> Iterator[Path]:
    """The studies that come with exegete."""
    folder = Path(str(resources.files("exegete.runs") / "library"))
    yield from sorted(folder.glob("*.toml"))


def load_study(source: str) -> Study:
    """Read a TOML file, or a built-in study by name, and check it."""
    return check_study(read_study(source))


def read_study(source: str) -> Study:
    """Read a TOML file, or a built-in study by name, unchecked: its tasks and models may be elsewhere."""
    path = Path(source)
    if not path.is_file():
        named = {p.stem: p for p in built_in_studies()}
        stem = path.stem if path.suffix == ".toml" else source
        if stem not in named:
            if path.suffix == ".toml" or path.parent != Path():
                raise ExegeteError(
                    f"there is no study file {source}: give a path, or a built-in study ({', '.join(named)})"
                )
            raise unknown("study", source, named)
        path = named[stem]
    try:
        settings = tomllib.loads(path.read_text(encoding="utf8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    plugins = settings.get("plugins", [])
    if isinstance(plugins, list):  # anything else is refused with all that is of the wrong kind
        plugins = [_beside(path, plugin) if isinstance(plugin, str) else plugin for plugin in plugins]
    given = {"name": name_from(path.stem)} | settings | {"plugins": plugins}
    study: Study = validate(Study, given, f"study {path.name}")
    return study


def _beside(path: Path, plugin: str) -> str:
    """A plugin file is looked for beside its study first."""
    return str(path.parent / plugin) if plugin.endswith(".py") and (path.parent / plugin).is_file() else plugin


def _check_model(model: str) -> None:
    try:
        MODELS.make(model)
    except UsageError as error:
        if ":" in model or parse(model).name in MODELS:
            raise
        raise UsageError(f"{error}; nor is there a checkpoint folder {model}") from None


def _instead(folder: Path) -> str:
    """What to do about a folder without a checkpoint of ours."""
    theirs = (folder / "config.json").is_file()
    return f"if transformers saved it, write hf:{folder}" if theirs else "train one there, or name another folder"


def check_study(study: Study) -> Study:
    """Find wrong names before any work is done: models, experiments, their importances."""
    from exegete.importance.catalogue import IMPORTANCES
    from exegete.runs.plugins import load_plugins
    from exegete.tasks.catalogue import check_task
    from exegete.training.checkpoint import is_checkpoint, is_trained

    load_plugins(study.plugins)
    for task in study.tasks:
        check_task(task)
        for model in study.models:
            study.training_for(task, model)
    for kind, given in (("task", study.tasks), ("model", study.models)):
        lost = [thing for thing in given if thing not in {getattr(cell, kind) for cell in study.cells}]
        if lost:
            other = "model" if kind == "task" else "task"
            raise UsageError(f"no {other} of study '{study.name}' fits {kind} '{lost[0]}': give it one, or drop it")
    for model in study.models:
        if not model.startswith(HUB) and Path(model).is_dir() and not is_checkpoint(Path(model)):
            raise ExegeteError(f"{model} holds no whole checkpoint: {_instead(Path(model))}")
        if not is_checkpoint(Path(model)):
            _check_model(model)
        if len(study.seeds) > 1 and is_trained(model):  # what a model of the hub is, only the hub knows
            raise UsageError(f"{model} is one trained model: give the study one seed")
    for entry in study.experiments:
        if not any(is_about(entry, task) for task in study.tasks):
            raise UsageError(f"no task of study '{study.name}' matches tasks = {entry['tasks']} of '{entry['name']}'")
    for experiment in study.built_experiments().values():
        for importance in experiment.importances:
            IMPORTANCES.make(importance)
    return study
