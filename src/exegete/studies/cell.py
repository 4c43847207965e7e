"""Cell: train one model, score the words of its texts, and ask every experiment.

What is done already is not done again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.base.files import write_json
from exegete.base.names import parse
from exegete.base.progress import Progress, silent
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.contract import Experiment, Subject
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance
from exegete.models.build import build
from exegete.models.classifier import Classifier
from exegete.studies.keys import code_hash, key_of
from exegete.studies.plugins import load_plugins
from exegete.studies.store import Stage, read_shards, stage, write_parquet, write_shards
from exegete.studies.study import Cell, Study
from exegete.tasks.batching import batches_of_one_length, collate
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Example, Task
from exegete.training.checkpoint import Checkpoint, hash_tensors, is_checkpoint, load_checkpoint
from exegete.training.fit import evaluate_held_out, predict
from exegete.training.settings import TrainingSettings
from exegete.training.train import train

SHARD = 256  # texts that are scored before the result is written

cached_task = lru_cache(maxsize=2)(load_task)


class Work(NamedTuple):
    """A cell in its study and run, and who is told how far it is."""

    run: Path
    study: Study
    cell: Cell
    progress: Progress = silent

    def tell(self, label: str, done: int, total: int) -> None:
        """Report on a part of this cell's work."""
        self.progress(f"{self.cell} · {label}", done, total)


def run_cell(work: Work) -> dict[str, Any]:
    """All stages of a cell; returns what it found and where, which is also kept under `cells/`."""
    load_plugins(work.study.plugins)
    task = cached_task(work.cell.task)
    checkpoint = trained(work, task)
    predicted = predict_stage(work, task, checkpoint)
    rows = {
        name: experiment_stage(work, task, checkpoint, predicted, name, built)
        for name, built in work.study.built_experiments().items()
    }
    facts = {
        **work.cell._asdict(),
        "code": code_hash(__name__),
        "study": key_of(study=work.study.model_dump(mode="json")),
        "data": {"origin": task.origin, "hash": task.hash, "notes": _notes(checkpoint, task), "labels": task.labels},
        "weights": checkpoint.weights_hash,
        "metrics": checkpoint.metrics,
        "training": checkpoint.key,
        "predict": predicted.folder.name,
        "experiments": {name: done.folder.name for name, done in rows.items()},
    }
    write_json(work.run / "cells" / f"{key_of(**work.cell._asdict())}.json", facts)
    return facts


def trained(work: Work, task: Task) -> Checkpoint:
    """The cell's model: a given checkpoint, or one that is trained here.

    Going on where an interrupted training stopped.
    """
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


def predict_stage(work: Work, task: Task, checkpoint: Checkpoint) -> Stage:
    """What the model predicts for every text: class, probabilities, and the words, for whoever reads the run."""
    examples = task.split(work.study.split)
    facts = {"data": task.hash, "weights": checkpoint.weights_hash, "split": work.study.split}
    at = stage(work.run, "predict", key_of(**facts, code=code_hash("exegete.training.fit")), **facts)
    if not at.done:
        probabilities = predict(checkpoint.model, examples).double().softmax(-1)
        frame = pl.DataFrame(
            {
                "example": [e.id for e in examples],
                "gold": [task.labels[e.label] for e in examples],
                "predicted": [task.labels[c] for c in probabilities.argmax(-1).tolist()],
                "probabilities": probabilities.tolist(),
                "n": [len(e) for e in examples],
                "words": [list(e.words) for e in examples],
            }
        )
        write_parquet(at.folder / "part-00000.parquet", frame)
        at.finish()
    return at


def score_stage(work: Work, task: Task, checkpoint: Checkpoint, importance: str) -> Stage:
    """One importance of all words of all texts, shard by shard."""
    facts = {"importance": importance, "data": task.hash, "weights": checkpoint.weights_hash, "split": work.study.split}
    built = IMPORTANCES.make(importance)
    at = stage(work.run, "score", key_of(**facts, code=_code_of(built)), **facts)
    if not at.done:
        shards = _shards(task.split(work.study.split))
        write_shards(
            at.folder, shards, partial(score_frame, checkpoint.model, built), partial(work.tell, parse(importance).name)
        )
        at.finish()
    return at


def _code_of(built: object) -> str:
    """The code of a thing: its module and what that imports; a plugin file's own source."""
    module = type(built).__module__
    if module.startswith("exegete."):
        return code_hash(module)
    import inspect

    return key_of(source=inspect.getsource(inspect.getmodule(type(built)) or type(built)))


def _shards(examples: Sequence[Example]) -> list[tuple[Example, ...]]:
    return [tuple(examples[start : start + SHARD]) for start in range(0, len(examples), SHARD)]


def score_frame(model: Classifier, importance: Importance, examples: Sequence[Example]) -> pl.DataFrame:
    """One row per text: its id and the scores of its words."""
    rows: list[list[float]] = [[] for _ in examples]
    for members in batches_of_one_length(examples, size=256, budget=8192):
        batch = collate([examples[i] for i in members], model.vocabulary)
        values = importance(model, batch).values.double()
        for i, row, words in zip(members, values, batch.words, strict=True):
            rows[i] = row[words].tolist()
    return pl.DataFrame(
        {"example": [e.id for e in examples], "scores": rows},
        schema={"example": pl.Int64, "scores": pl.List(pl.Float64)},
    )


def experiment_stage(
    work: Work, task: Task, checkpoint: Checkpoint, predicted: Stage, name: str, built: Experiment
) -> Stage:
    """An experiment's rows, shard by shard."""
    scored = {importance: score_stage(work, task, checkpoint, importance) for importance in built.importances}
    facts = {
        "experiment": name,
        "settings": repr(built),
        "data": task.hash,
        "weights": checkpoint.weights_hash,
        "split": work.study.split,
    }
    scores = {importance: at.folder.name for importance, at in scored.items()}
    key = key_of(**facts, scores=scores, code=code_hash(EXPERIMENTS[name].load().__module__))
    at = stage(work.run, "experiment", key, **facts, scores=scores)
    if not at.done:
        subjects = partial(_subject, task, checkpoint.model, work.study.split, predicted, scored)
        shards = range(len(_shards(task.split(work.study.split))))
        write_shards(at.folder, shards, lambda number: built.rows(subjects(number)), partial(work.tell, name))
        at.finish()
    return at


def _subject(
    task: Task, model: Classifier, split: str, predicted: Stage, scored: dict[str, Stage], number: int
) -> Subject:
    examples = task.split(split)
    shard = _shards(examples)[number]
    classes = pl.read_parquet(read_shards(predicted.folder)[0])["predicted"][
        number * SHARD : number * SHARD + len(shard)
    ]
    return Subject(
        model=model,
        task=task,
        examples=shard,
        predicted=torch.tensor([task.labels.index(c) for c in classes]),
        scores={
            name: padded(pl.read_parquet(read_shards(at.folder)[number])["scores"].to_list())
            for name, at in scored.items()
        },
        mean_length=sum(map(len, examples)) / len(examples),
    )


def padded(rows: Sequence[Sequence[float]]) -> Tensor:
    """Ragged rows as one tensor with NaN beyond their ends."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[float("nan")] * (width - len(row))] for row in rows], dtype=torch.float64).reshape(
        len(rows), width
    )


def rows_of(run: Path, facts: dict[str, Any], experiment: str) -> Iterator[pl.DataFrame]:
    """The rows of a finished cell, with its task, model and seed in front."""
    for part in read_shards(run / "stages" / facts["experiments"][experiment]):
        yield pl.read_parquet(part).select(
            *(pl.lit(facts[name]).alias(name) for name in ("task", "model")),
            pl.lit(facts["seed"], dtype=pl.Int64).alias("seed"),
            pl.all(),
        )
