"""Estimating: about how long an audit will take, said as soon as its first piece shows how fast this machine is.

Nothing is run for it. The plan is counted: words that are trained on, and passes of words that the experiments need.
The first pieces of the run itself, some batches of its first training (or its first predictions, where there is nothing
to train), tell how long a pass takes (`count_passes`). The rest is a product, and no shorter than the longest piece of
a question. Trainings that stop early, and stages that a run has already, are not known beforehand.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exegete.base.names import parse
from exegete.base.progress import Progress
from exegete.experiments.common.contract import Experiment, recipes, text_limit
from exegete.runs.cell import cached_task
from exegete.runs.engine.contract import Engine
from exegete.runs.passes import OF_HUB, OURS, Costs, SplitQuestion, count_passes
from exegete.runs.run import MANIFEST
from exegete.runs.study import Cell, Study
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example
from exegete.training.checkpoint import is_of_hub, is_trained
from exegete.training.recipe import Recipe
from exegete.training.settings import TrainingSettings

SINGLE, LIGHT = ("average", "flat", "ladder"), 0.3  # models of single words, and their training beside one of texts
STILL = 0.6  # of a training, where only attention moves
STOPS = 0.7  # of the epochs, where patience may end a training: not before two that were better than all others
START, EACH = 6.0, 1.0  # seconds for imports and the report, and for tables and figures of an experiment
PIECES = 2  # a question on one split is cut in shards, of which the last takes up to half
WARM, ENOUGH, LONG = 0.05, 0.2, 10.0  # first steps are slow; the share of an epoch, or seconds, that tell its speed


class Plan(NamedTuple):
    """What there is to do, in passes of a word."""

    training: float  # of all trainings
    asking: float  # of all questions
    trainings: int  # that may be done side by side
    experiments: int
    longest: float = 0.0  # of the questions: what one worker does alone


class DonePiece(NamedTuple):
    """A piece of work that was done."""

    passes: float  # of a word
    seconds: float


def seconds_of(plan: Plan, pieces: Sequence[DonePiece], workers: int) -> float:
    """How long a plan takes where pieces of it took so long."""
    each = sum(piece.seconds for piece in pieces) / sum(piece.passes for piece in pieces)  # seconds for a word
    trained = plan.training * each / max(1, min(workers, plan.trainings))
    asked = (plan.experiments * EACH + plan.asking * each) / workers
    return START + max(asked, plan.longest * each) + trained


def plan_audit(study: Study) -> Plan:
    """Everything that a study asks for, counted."""
    *counted, longest = zip(*(_cell(study, cell) for cell in study.cells), strict=True)
    return Plan(*map(sum, counted))._replace(longest=max(longest))


def _cell(study: Study, cell: Cell) -> Plan:
    task, settings, costs = cached_task(cell.task), study.training_for(cell.task, cell.model), _costs(cell.model)
    built = study.built_experiments(cell.task)
    beside = dict.fromkeys(recipe for each in built.values() for recipe in _recipes(each, cell))
    own = [] if is_trained(cell.model) else [_epochs(settings)]
    trainings = own + [_beside(recipe, cell, settings) for recipe in beside]
    words = count_words(task.split("train")) if trainings else 0
    asked = [_read(each, task.splits.get(each.split, ()), costs) for each in _questions(study, built)]
    trained = sum(trainings) * words * costs.step
    return Plan(trained, sum(asked), len(trainings), len(built), max(asked, default=0.0) / PIECES)


def _questions(study: Study, built: Mapping[str, Experiment]) -> Iterator[SplitQuestion]:
    """Every experiment on every split; the same texts are scored once."""
    known: set[tuple[str, str, int | None]] = set()
    for name, each in built.items():
        for split in each.splits or (study.split,):
            wanted = {(method, split, text_limit(each, split)) for method in each.importances}
            yield SplitQuestion(name, each, split, tuple(method for method, *_ in sorted(wanted - known, key=str)))
            known |= wanted


def _costs(model: str) -> Costs:
    return OF_HUB if is_of_hub(model) else OURS


def _recipes(built: Experiment, cell: Cell) -> list[Recipe]:
    """Models that are trained beside one; of a model that came trained, none are."""
    return [] if is_trained(cell.model) else list(recipes(built, cell.model, cell.seed).values())


def _beside(recipe: Recipe, cell: Cell, settings: TrainingSettings) -> float:
    """Epochs of the cell's own model that take as long as the training of a companion."""
    lighter = parse(recipe.model).name in SINGLE and parse(cell.model).name not in SINGLE if recipe.model else False
    return _epochs(recipe.settings(settings)) * (LIGHT if lighter else STILL if recipe.moves == "attention" else 1.0)


def _epochs(settings: TrainingSettings) -> float:
    """Epochs that are trained, about."""
    return min(settings.epochs, max(STOPS * settings.epochs, settings.patience + 2))


def _read(asked: SplitQuestion, examples: Sequence[Example], costs: Costs) -> float:
    """Readings of a word that a question takes, its scores included."""
    texts, words = text_limit(asked.built, asked.split), count_words(examples)
    share = 1.0 if texts is None else min(1.0, texts / max(1, len(examples)))
    return words * share * count_passes(asked._replace(length=words / max(1, len(examples))), costs)


class Estimating:
    """Listens to a run and says, once, how long it will take; passes everything on."""

    def __init__(self, study: Study, run: Path, listener: Progress, engine: Engine, stop: str = "Ctrl-C") -> None:
        self.study, self.listener, self.engine, self.stop = study, listener, engine, stop
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
            self.say(_sentence(seconds_of(plan_audit(self.study), [piece], workers), workers, self.stop))

    def say(self, sentence: str) -> None:
        """Pass on what is to be kept in sight."""
        speak = getattr(self.listener, "say", None)
        if speak is not None:
            speak(sentence)

    def _piece(self, label: str, share: float, took: float) -> DonePiece | None:
        """The piece of work that a label is about, where it tells a speed."""
        cell = next((cell for cell in self.study.cells if label.startswith(str(cell))), None)
        what = label.rpartition(" · ")[2]
        if cell is None or share <= 0 or took <= 0:
            return None
        if what.startswith("epoch"):
            step = _costs(cell.model).step
            return DonePiece(share * step * count_words(cached_task(cell.task).split("train")), took)
        if what == "predict" and is_trained(cell.model):
            return DonePiece(share * count_words(cached_task(cell.task).split(self.study.split)), took)
        return None


def count_words(examples: Sequence[Example]) -> int:
    """Words of texts, all of their parts."""
    return int(column_of(examples, "all_words").sum())


def _sentence(seconds: float, workers: int, stop: str) -> str:
    cores_ = f"{workers} core{'s' if workers > 1 else ''}"
    return f"this takes about {_told(seconds)} on {cores_}; {stop} keeps what is done"


def _told(seconds: float) -> str:
    """Tens of seconds, half minutes up to ten, minutes, or hours: rounded by a quarter at the most."""
    if seconds < 75:
        return f"{max(10, 10 * round(seconds / 10))} seconds"
    minutes = round(seconds / 30) / 2 if seconds < 600 else round(seconds / 60)
    return f"{minutes:g} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
