"""Scoring: the importances of many texts, in shards that are written one by one."""

from collections.abc import Sequence

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.importance.contract import Importance
from exegete.models.classifier import Classifier
from exegete.tasks.batching import batches_of_one_length, collate
from exegete.tasks.example import Example

SHARD = 512  # texts that are scored before the result is written


def shards(examples: Sequence[Example]) -> list[tuple[Example, ...]]:
    """Texts by length, so that those of a shard go into few batches; of equal length, in their own order."""
    ordered = sorted(examples, key=len)
    return [tuple(ordered[start : start + SHARD]) for start in range(0, len(ordered), SHARD)]


def score_frame(model: Classifier, importance: Importance, examples: Sequence[Example]) -> pl.DataFrame:
    """One row per text: its id and the scores of its words."""
    rows: list[list[float]] = [[] for _ in examples]
    for members in batches_of_one_length(examples, size=256, budget=8192):
        batch = collate([examples[i] for i in members], model.vocabulary)
        values = importance(model, batch).values.double()
        for i, row, words in zip(members, values, batch.words, strict=True):
            if not bool(row[words].isfinite().all()):
                raise ExegeteError(
                    f"{type(importance).__name__} gave a word of example {examples[i].id} no finite score: an "
                    "importance must give every word a number"
                )
            rows[i] = row[words].tolist()
    return pl.DataFrame(
        {"example": [e.id for e in examples], "scores": rows},
        schema={"example": pl.Int64, "scores": pl.List(pl.Float64)},
    )


def padded(rows: Sequence[Sequence[float]]) -> Tensor:
    """Ragged rows as one tensor with NaN beyond their ends."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[float("nan")] * (width - len(row))] for row in rows], dtype=torch.float64).reshape(
        len(rows), width
    )
