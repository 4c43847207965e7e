"""What experiments are asked about in tests, and rows as a study keeps them."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import torch

from exegete.experiments.common.contract import Subject
from exegete.tasks.example import Example, Task
from exegete.training.evaluation import predict


def subject_of(model: Any, task: Task, examples: tuple[Example, ...] | None = None, **more: Any) -> Subject:
    """A model asked about a task's test split, or about some examples, with what it predicts itself."""
    some = task.split("test") if examples is None else examples
    whole = {"model": model, "task": task, "examples": some, "scores": {}, "mean_length": 4.0, **more}
    if "predicted" not in whole:
        whole["predicted"] = torch.zeros(0) if task.kind == "translation" else predict(model, some).argmax(-1)
    return Subject(**whole)


def tensors(scores: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, torch.Tensor]:
    """Scores written by hand, by method, as a study reads them."""
    return {name: torch.tensor(rows, dtype=torch.float64) for name, rows in scores.items()}


def cell(
    rows: pl.DataFrame, seed: int = 0, model: str = "bilstm", task: str = "small", split: str = "test"
) -> pl.DataFrame:
    """Rows as a study keeps them."""
    where = {"task": task, "model": model, "seed": seed, "split": split}
    return rows.select(*(pl.lit(value).alias(name) for name, value in where.items()), pl.all())
