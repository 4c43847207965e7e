"""Estimating: about how long an audit will take, said as soon as its first piece shows how fast this machine is.

Nothing is run for it. The plan is counted: words that are trained on, and readings of words that the experiments need.
The first pieces of the run itself, some batches of its first training (or its first predictions, where there is nothing
to train), tell how long a word takes; a reading takes a fifth of a training step. The rest is a product. Trainings that
stop early, and stages that a run has already, are not known beforehand.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exegete.base.names import parse
from exegete.base.progress import Progress
from exegete.experiments.common.contract import Experiment, recipes
from exegete.runs.cell import cached_task
from exegete.runs.engine.contract import Engine
from exegete.runs.run import MANIFEST
from exegete.runs.study import Cell, Study
from exegete.tasks.example import Example
from exegete.training.checkpoint import is_of_hub, is_trained
from exegete.training.recipe import Recipe
from exegete.training.settings import TrainingSettings

STOPS = 0.7  # of the epochs, where patience may end a training
STEP = 5.0  # readings that take as long as a training step
START, EACH = 6.0, 1.0  # seconds for imports and the report, and for tables and figures of an experiment
WARM, ENOUGH, LONG = 0.05, 0.2, 10.0  # first steps are slow; the share of an epoch, or seconds, that tell its speed
# Readings of a text, or steps that take as long, by importance and by experiment, as measured on film reviews.
PASSES = {"lrp": 130, "integrated_gradients": 80, "deeplift": 60, "smoothgrad": 100, "lime": 200, "kernel_shap": 200}
OF_HUB = PASSES | {"lrp": 6}  # of a Hugging Face model: by gradients, not layer by layer
BY_ERASING = ("occlusion", "leave_one_out", "replacement", "blocking")  # one per word
READINGS = {"adversary_search": 200, "known_answer": 15, "plausibility": 15, "heads": 180, "knockout": 75}
FEW = 5
FULL = 1.5  # erased texts against plain ones: they are written down, and passes are not all full


class Plan(NamedTuple):
    """What there is to do, in words."""

    training: float  # words × epochs of all trainings
    reading: float  # words × readings
    trainings: int  # that may be done side by side
    experiments: int


class Piece(NamedTuple):
    """A piece of work that was done."""

    kind: str  # training or reading
    words: float
    seconds: float


def seconds_of(plan: Plan, pieces: Sequence[Piece], workers: int) -> float:
    """How long a plan takes where pieces of it took so long.

    A word's training takes STEP times as long as its reading: what no piece tells is known from the other kind.
    """
    readings = sum(piece.words * (STEP if piece.kind == "training" else 1) for piece in pieces)
    reading = sum(piece.seconds for piece in pieces) / readings  # seconds for a word
    trained = plan.training * STEP * reading / max(1, min(workers, plan.trainings))
    return START + (plan.experiments * EACH + plan.reading * reading) / workers + trained


def planned(study: Study) -> Plan:
    """Everything that a study asks for, counted."""
    found = [_cell(study, cell) for cell in study.cells]
    return Plan(*(sum(column) for column in zip(*found, strict=True)))


def _cell(study: Study, cell: Cell) -> Plan:
    task, settings = cached_task(cell.task), study.training_for(cell.task, cell.model)
    built = study.built_experiments(cell.task)
    beside = [recipe.settings(settings) for each in built.values() for recipe in _recipes(each, cell)]
    trainings = [*([] if is_trained(cell.model) else [settings]), *beside]
    words = words_of(task.split("train")) if trainings else 0
    asked = sum(
        _read(name, each, task.splits.get(split, ()), OF_HUB if is_of_hub(cell.model) else PASSES)
        for name, each in built.items()
        for split in each.splits or (study.split,)
    )
    return Plan(sum(map(_epochs, trainings)) * words, asked, len(trainings), len(built))


def _recipes(built: Experiment, cell: Cell) -> list[Recipe]:
    """Models that are trained beside one; of a model that came trained, none are."""
    return [] if is_trained(cell.model) else list(recipes(built, cell.model, cell.seed).values())


def _epochs(settings: TrainingSettings) -> float:
    """Epochs that are trained, about."""
    return settings.epochs * (STOPS if settings.epochs > settings.patience + 1 else 1.0)


def _read(name: str, built: Experiment, examples: Sequence[Example], passes: Mapping[str, int] = PASSES) -> float:
    """Words that an experiment reads of a split, its scores included."""
    share = 1.0 if built.texts is None else min(1.0, built.texts / max(1, len(examples)))
    words = words_of(examples)
    length = words / max(1, len(examples))
    scores = sum(_passes(method, length, passes) for method in built.importances)
    return words * share * (scores + READ.get(name, _few)(name, built, length))


def _passes(method: str, length: float, known: Mapping[str, int]) -> float:
    """Readings that scoring a text takes."""
    spec = parse(method)
    if spec.name in BY_ERASING:
        return FULL * length
    return float(spec.settings.get("samples", known.get(spec.name, 3 * FEW)))


def _few(name: str, built: Experiment, length: float) -> float:  # noqa: ARG001
    return READINGS.get(name, FEW)


def _faithfulness(name: str, built: Experiment, length: float) -> float:  # noqa: ARG001
    """Fractions, kept and removed, and flips, which come early."""
    every = len(built.importances) * len(getattr(built, "removals", ("delete",)))
    return FULL * every * (10 + 0.6 * min(length, 50))


def _mediation(name: str, built: Experiment, length: float) -> float:  # noqa: ARG001
    """Every word asked about, alone and in so many halves, deleted (from half a text) and replaced."""
    draws = getattr(built, "draws", 1)
    asked = min(length, getattr(built, "words", length))
    return FULL * asked * (1 + draws / 2 + 2 * draws) / 2  # of the two splits, one is hardly asked


READ: dict[str, Callable[[str, Experiment, float], float]] = {
    "faithfulness": _faithfulness,
    "mediation": _mediation,
}


class Estimating:
    """Listens to a run and says, once, how long it will take; passes everything on."""

    def __init__(self, study: Study, run: Path, listener: Progress, engine: Engine) -> None:
        self.study, self.listener, self.engine = study, listener, engine
        self.told = (run / MANIFEST).is_file()  # it is there: nobody waits
        self._begun: dict[str, tuple[float, int]] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        """Show how far a piece of work is; the first that lasted tells how fast this machine is."""
        self.listener(label, done, total)
        if self.told or done < WARM * total:
            return
        began, before = self._begun.setdefault(label, (time.monotonic(), done))
        took, share = time.monotonic() - began, (done - before) / total
        if share < ENOUGH and took < LONG and not before < done == total:
            return
        piece = self._piece(label, share, took)  # not before: it may load the texts, and that takes seconds
        if piece is not None:
            self.told = True
            workers = self.engine.workers
            self.say(_sentence(seconds_of(planned(self.study), [piece], workers), workers))

    def say(self, sentence: str) -> None:
        """Pass on what is to be kept in sight."""
        speak = getattr(self.listener, "say", None)
        if speak is not None:
            speak(sentence)

    def _piece(self, label: str, share: float, took: float) -> Piece | None:
        """The piece of work that a label is about, where it tells a speed."""
        cell = next((cell for cell in self.study.cells if label.startswith(str(cell))), None)
        what = label.rpartition(" · ")[2]
        if cell is None or share <= 0 or took <= 0:
            return None
        if what.startswith("epoch"):
            return Piece("training", share * words_of(cached_task(cell.task).split("train")), took)
        if what == "predict" and is_trained(cell.model):
            return Piece("reading", share * words_of(cached_task(cell.task).split(self.study.split)), took)
        return None


def words_of(examples: Sequence[Example]) -> int:
    """Words of texts, all of their parts."""
    return sum(len(e.all_words) for e in examples)


def _sentence(seconds: float, workers: int) -> str:
    cores_ = f"{workers} core{'s' if workers > 1 else ''}"
    return f"this takes about {_told(seconds)} on {cores_}; Ctrl-C keeps what is done"


def _told(seconds: float) -> str:
    """Minutes, or tens of seconds."""
    if seconds < 90:
        return f"{10 * math.ceil(seconds / 10)} seconds"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
