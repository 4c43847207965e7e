"""Estimating: about how long an audit will take, said before it starts.

A few batches are trained and read, with the real model on the real texts; the rest is counting: trainings × epochs ×
words, and texts × passes that an experiment runs for each. It is right within a factor of two or so: training may stop
early, and stages that a run has already are not counted out.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from exegete.experiments.common.contract import Experiment, recipes
from exegete.models.build import build_model
from exegete.runs.cell import cached_task
from exegete.runs.engine.local import cores, one_thread
from exegete.runs.run import MANIFEST
from exegete.runs.study import Cell, Study
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import is_trained
from exegete.training.evaluation import evaluate
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings

PROBED = 128  # texts that are trained on and read
STOPS = 0.7  # of the epochs, since patience ends most trainings
# Readings of a text that an experiment needs for each of its methods, as measured on film reviews; others need few.
READINGS = {
    "faithfulness": 90,
    "plausibility": 30,
    "known_answer": 15,
    "agreement": 8,
    "adversary_search": 25,
}  # a method
FEW = 5
START = 12.0  # seconds for imports, tables, figures and the report


class Speed(NamedTuple):
    """Seconds for a word."""

    training: float
    reading: float


def estimate(study: Study, run: Path, workers: int | None = None) -> str:
    """A sentence; nothing where the run is complete already."""
    if (run / MANIFEST).is_file():
        return ""
    with one_thread():
        found = [_seconds(study, cell) for cell in study.cells]
    used = workers or cores()
    trained, asked = (sum(part) for part in zip(*found, strict=True))
    about = START + trained / min(used, _trainings(study)) + asked / used
    return f"this takes about {_told(about)} on {used} core{'s' if used > 1 else ''}; Ctrl-C keeps what is done"


def _trainings(study: Study) -> int:
    """Models that may be trained side by side; one alone keeps one core busy."""
    beside = (recipes(each, c.model, c.seed) for c in study.cells for each in study.built_experiments(c.task).values())
    return len(study.cells) + sum(map(len, beside))


def _seconds(study: Study, cell: Cell) -> tuple[float, float]:
    """One model: its trainings, and what is asked of it."""
    if is_trained(cell.model):
        return 0.0, 0.0  # nothing to train, and the readings are few beside what loading takes
    task, settings = cached_task(cell.task), study.training_for(cell.task)
    built = study.built_experiments(cell.task)
    speed = _speed(task, cell, settings)
    trained = settings.epochs + sum(_epochs(each, cell, settings) for each in built.values())
    training = trained * STOPS * _words(task.split("train")) * speed.training
    asked = sum(_read(name, each, task.split(study.split)) for name, each in built.items())
    return training, asked * speed.reading


def _epochs(built: Experiment, cell: Cell, settings: TrainingSettings) -> int:
    """Of all models that an experiment trains beside this one."""
    return sum(recipe.settings(settings).epochs for recipe in recipes(built, cell.model, cell.seed).values())


def _read(name: str, built: Experiment, examples: Sequence[Example]) -> float:
    """Words that an experiment reads, its splits included."""
    share = 1.0 if built.texts is None else min(1.0, built.texts / max(1, len(examples)))
    methods = max(1, len(built.importances))
    return _words(examples) * share * READINGS.get(name, FEW) * methods * max(1, len(built.splits))


def _speed(task: Task, cell: Cell, settings: TrainingSettings) -> Speed:
    """Train and read a few texts of about median length: their batches are as full as those of a whole epoch."""
    by_length = sorted(task.split("train"), key=len)
    middle = max(0, (len(by_length) - PROBED) // 2)
    some = tuple(by_length[middle : middle + PROBED])
    small = replace(task, splits={"train": some, "dev": some[:2], "test": some[:2]}, alignments={})
    once = settings.model_copy(update={"epochs": 1, "metric": "loss"})
    model = build_model(cell.model, task, cell.seed)
    Fit(
        model, replace(small, splits={**small.splits, "train": some[:8]}), once, cell.seed
    ).run()  # first calls are slow
    started = time.perf_counter()
    Fit(model, small, once, cell.seed).run()
    trained = time.perf_counter()
    evaluate(model.eval(), some)
    read = time.perf_counter()
    words = max(1, _words(some))
    return Speed((trained - started) / words, (read - trained) / words)


def _words(examples: Sequence[Example]) -> int:
    return sum(len(e.all_words) for e in examples)


def _told(seconds: float) -> str:
    """Minutes, or tens of seconds."""
    if seconds < 90:
        return f"{10 * math.ceil(seconds / 10)} seconds"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
