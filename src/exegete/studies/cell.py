"""Cell: train one model, score the words of its texts, ask every experiment; what is done already is not done again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.base.files import write_json
from exegete.base.progress import Progress, silent
from exegete.experiments.contract import Experiment, caveats, unsuited
from exegete.models.build import build
from exegete.models.classifier import Classifier
from exegete.studies.keys import code_hash, key_of
from exegete.studies.plugins import load_plugins
from exegete.studies.stages import Case, experiment_stage, predict_stage
from exegete.studies.store import read_shards, stage
from exegete.studies.study import Cell, Study
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import Checkpoint, hash_tensors, is_checkpoint, load_checkpoint
from exegete.training.fit import evaluate_held_out
from exegete.training.settings import TrainingSettings
from exegete.training.train import train

cached_task = lru_cache(maxsize=2)(load_task)


class Work(NamedTuple):
    """A cell in its study and run, and who is told how far it is."""

    run: Path
    study: Study
    cell: Cell
    code: str  # of what is about to run, taken before anything ran
    progress: Progress = silent

    def tell(self, label: str, done: int, total: int) -> None:
        """Report on a part of this cell's work."""
        self.progress(f"{self.cell} · {label}", done, total)


def run_cell(work: Work) -> dict[str, Any]:
    """All stages of a cell; returns what it found and where, which is also kept under `cells/`."""
    load_plugins(work.study.plugins)
    task = cached_task(work.cell.task)
    checkpoint = trained(work, task)
    case = Case(work.run, work.study.split, task, checkpoint, work.tell)
    predicted = predict_stage(case)
    experiments = work.study.built_experiments(work.cell.task)
    reasons = {name: reason for name, built in experiments.items() if (reason := unsuited(built, task)) is not None}
    asked = {name: _ask(case, name, built) for name, built in experiments.items() if name not in reasons}
    notes = [note for found in asked.values() for note in found.notes]
    notes += [f"{name}: {caveat}" for name in asked for caveat in caveats(experiments[name], task)]
    notes += [f"{name} was not asked: {reason}" for name, reason in reasons.items()]
    facts = {
        **work.cell._asdict(),
        "code": work.code,
        "data": {"origin": task.origin, "hash": task.hash, "notes": _notes(checkpoint, task), "labels": task.labels},
        "weights": checkpoint.weights_hash,
        "metrics": checkpoint.metrics,
        "majority": majority(case.examples),
        "training": checkpoint.key,
        "predict": predicted.folder.name,
        "experiments": {name: found.folders for name, found in asked.items()},
        "costs": {name: found.costs for name, found in asked.items()},
        "notes": sorted(set(notes)),
    }
    write_json(work.run / "cells" / f"{key_of(**work.cell._asdict())}.json", facts)
    return facts


def majority(examples: Sequence[Example]) -> float:
    """The share of the most frequent class."""
    return max(Counter(e.label for e in examples).values()) / len(examples)


class _Found(NamedTuple):
    """Where an experiment's rows are, what their scores took, and what must be said of these."""

    folders: dict[str, str]  # by split
    costs: list[dict[str, Any]]  # by importance
    notes: list[str]


def _ask(case: Case, name: str, built: Experiment) -> _Found:
    """One experiment on every split that it asks about."""
    folders, costs, notes = {}, [], []
    for split in built.splits or (case.split,):
        there = case._replace(split=split, texts=built.texts)
        at, scored, refused = experiment_stage(there, name, built)
        folders[split] = at.folder.name
        told = {importance: stage.result() for importance, stage in scored.items()}
        costs += [{"split": split, "method": importance} | _cost(facts) for importance, facts in told.items()]
        notes += [f"{importance} is left out: {reason}" for importance, reason in refused.items()]
        notes += [
            f"{importance} gives every word 0 in {facts['all_zero']} of {facts['n']} texts ({split})"
            for importance, facts in told.items()
            if facts["all_zero"]
        ]
    return _Found(folders, costs, notes)


def _cost(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: facts[key] for key in ("n", "forward", "backward", "ms", "mean_error", "max_error", "all_zero")}


def trained(work: Work, task: Task) -> Checkpoint:
    """The cell's model: a given checkpoint, or one trained here, going on where an interrupted training stopped."""
    given = Path(work.cell.model)
    if is_checkpoint(given):
        return fitting(load_checkpoint(given), task, given)
    settings, seed = work.study.training, work.cell.seed
    model = build(work.cell.model, task, seed)
    facts = {
        "task": work.cell.task,
        "data": task.hash,
        "model": work.cell.model,
        "seed": seed,
        "training": settings.model_dump(),
    }
    at = stage(work.run, "train", training_key(model, task, seed, settings), **facts)
    folder = at.folder / "checkpoint"
    if at.done:
        return load_checkpoint(folder)
    checkpoint = train(model, task, seed, settings, folder, at.facts["key"], work.tell)
    at.finish(metrics=checkpoint.metrics)
    return checkpoint


def training_key(model: Classifier, task: Task, seed: int, settings: TrainingSettings) -> str:
    """What determines a trained model.

    Its first weights (vectors included), its data, seed and settings, and the code that trains it.
    """
    first = hash_tensors(model.state_dict())
    return key_of(
        model=model.spec,
        first=first,
        data=task.hash,
        seed=seed,
        training=settings.model_dump(),
        code=code_hash("exegete.training.train"),
    )


def fitting(checkpoint: Checkpoint, task: Task, folder: Path) -> Checkpoint:
    """Refuse to judge a model on a task with other classes or other words; its scores are those on this task."""
    if checkpoint.model.labels != task.labels:
        theirs, ours = (", ".join(labels) for labels in (checkpoint.model.labels, task.labels))
        raise ExegeteError(
            f"{folder} predicts the classes {theirs}, task '{task.name}' has {ours}: choose the task that it was "
            f"trained on ({checkpoint.task})"
        )
    if (checkpoint.tokenizer, checkpoint.lower) != (task.tokenizer, task.lower):
        raise ExegeteError(
            f"{folder} reads texts with tokenizer={checkpoint.tokenizer},lower={checkpoint.lower}: give task "
            f"'{task.name}' the same settings"
        )
    metrics = evaluate_held_out(checkpoint.model, task)
    return replace(checkpoint, metrics=checkpoint.metrics | metrics)


def _notes(checkpoint: Checkpoint, task: Task) -> tuple[str, ...]:
    """What a reader must know of the data."""
    if checkpoint.data_hash == task.hash:
        return task.notes
    other = (
        f"the model was trained on other data ({checkpoint.task}): texts that it has learnt may be among those studied"
    )
    return (*task.notes, other)


def rows_of(run: Path, facts: dict[str, Any], experiment: str) -> Iterator[pl.DataFrame]:
    """The rows of a finished cell, with its task, model, seed and split in front."""
    for split, folder in facts["experiments"].get(experiment, {}).items():
        for path in read_shards(run / "stages" / folder):
            yield pl.read_parquet(path).select(
                *(pl.lit(facts[name]).alias(name) for name in ("task", "model")),
                pl.lit(facts["seed"], dtype=pl.Int64).alias("seed"),
                pl.lit(split).alias("split"),
                pl.all(),
            )
