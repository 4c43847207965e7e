"""Shards: the importances of many texts, in shards that are written one by one."""

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, overload

import polars as pl
import torch
from torch import Tensor

from exegete.base.progress import Progress, silent
from exegete.importance.checks import finite
from exegete.importance.contract import Importance, Scores
from exegete.importance.sharing import sharing
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.disk import Places, column_of
from exegete.tasks.example import Example
from exegete.tasks.selection import choose_texts, in_steps

SHARD, WORDS = 512, 16_384  # texts, and their words, that are scored before the result is written
FEW = 25  # texts of a shard where not all are asked about, for what is asked takes long: workers share them
SIZE, BUDGET = 256, 8192  # texts and words that are scored together
LOGITS = 32_000  # of these texts: methods ask about some 1,000 erased ones for each, all of which are kept: 256 MB
TIMED, TIMED_WORDS = 6, 2048  # texts, and their words, whose scoring is timed
SCHEMA: dict[str, Any] = {
    "example": pl.Int64,
    "scores": pl.List(pl.Float64),
    "signed": pl.Boolean,
    "error": pl.Float64,
    "forward": pl.Int64,
    "backward": pl.Int64,
}


class Portions(Sequence[tuple[Example, ...]]):
    """Texts that are worked on some at a time; what is asked for is read then."""

    mean_length: float  # of all texts, in words

    @overload
    def __getitem__(self, at: int) -> tuple[Example, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> list[tuple[Example, ...]]: ...
    def __getitem__(self, at: int | slice) -> tuple[Example, ...] | list[tuple[Example, ...]]:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        return self.portion(range(len(self))[at])

    @abstractmethod
    def portion(self, number: int) -> tuple[Example, ...]:
        """One of them."""


class Shards(Portions):
    """Texts by length, so that those of a shard go into few batches; of equal length, in their own order.

    A shard is read when it is asked for: only the order of all texts is held.
    """

    def __init__(self, examples: Sequence[Example], most: int = WORDS, texts: int = SHARD) -> None:
        lengths = column_of(examples, "length")
        self.examples, self.mean_length = examples, int(lengths.sum()) / max(1, len(lengths))
        self._order = lengths.argsort(kind="stable")
        self._ends = _ends(lengths[self._order], most, texts)

    def __len__(self) -> int:
        return len(self._ends)

    def portion(self, number: int) -> tuple[Example, ...]:
        """The texts of a shard."""
        start = self._ends[number - 1] if number else 0
        return tuple(self.examples[i] for i in self._order[start : self._ends[number]].tolist())


def _ends(lengths: Places, most: int, texts: int) -> list[int]:
    """Where shards end, of lengths in order: after so many texts, or before they have more words than that."""
    found: list[int] = []
    start = words = 0
    for place, length in enumerate(lengths.tolist()):
        if place - start == texts or (place > start and words + length > most):
            found.append(place)
            start, words = place, 0
        words += length
    return [*found, len(lengths)] if len(lengths) else []


class StepShards(Portions):
    """Texts in their keyed order, step by step (`exegete.tasks.selection.in_steps`); those of a step by length."""

    def __init__(self, examples: Sequence[Example], texts: int | None) -> None:
        self._steps = [Shards(some, texts=FEW) for some in in_steps(examples, texts)]
        self._places = [(step, number) for step in self._steps for number in range(len(step))]
        lengths = column_of(examples, "length")
        self.mean_length = int(lengths.sum()) / max(1, len(lengths))

    def __len__(self) -> int:
        return len(self._places)

    def portion(self, number: int) -> tuple[Example, ...]:
        """The texts of a shard of a step."""
        step, place = self._places[number]
        return step[place]


def cut_shards(examples: Sequence[Example], texts: int | None) -> Shards:
    """The shards of a split's texts of which so many are asked about; all, unless given."""
    return Shards(examples, texts=SHARD if texts is None else FEW)


def score_frames(
    model: Predictor, importances: Mapping[str, Importance], examples: Sequence[Example], progress: Progress = silent
) -> dict[str, pl.DataFrame]:
    """By importance, one row per text: its id, the scores of its words, their error and what they took.

    All importances of a batch come one after the other, so that a text with the same words erased is run only once.
    """
    found: dict[str, dict[str, list[Any]]] = {name: {column: [] for column in SCHEMA} for name in importances}
    order: list[int] = []
    for members in batches_of_one_length(examples, _together(model), BUDGET):
        batch = model.collate([examples[i] for i in members])
        order += members
        with sharing():
            for name, importance in importances.items():
                for column, values in _columns(name, importance(model, batch), batch).items():
                    found[name][column] += values
        progress("texts", len(order), len(examples))
    back = pl.Series(order, dtype=pl.UInt32).arg_sort()
    return {name: pl.DataFrame(columns, schema=SCHEMA)[back] for name, columns in found.items()}


def _together(model: Predictor) -> int:
    """Texts that are scored together; few where classes are the words of a vocabulary."""
    return max(1, min(SIZE, LOGITS // len(model.labels)))


def _columns(name: str, scores: Scores, batch: Batch) -> dict[str, list[Any]]:
    """A value per text of a batch."""
    finite(name, scores, batch)
    nothing = [None] * len(batch.ids)
    values, words = scores.values.double().cpu().numpy(), batch.words.cpu().numpy()
    return {
        "example": batch.ids.tolist(),
        "scores": [row[there] for row, there in zip(values, words, strict=True)],
        "signed": [scores.signed] * len(batch.ids),
        "error": nothing if scores.error is None else scores.error.double().tolist(),
        "forward": nothing if scores.cost is None else scores.cost.forward.tolist(),
        "backward": nothing if scores.cost is None else scores.cost.backward.tolist(),
    }


def milliseconds(model: Predictor, importance: Importance, examples: Sequence[Example]) -> float:
    """What an importance takes per text, alone, without what others have run already; the mean over a few texts."""
    some = Shards(choose_texts(examples, TIMED), TIMED_WORDS)[0]  # the shortest of them, where they are long
    started = time.perf_counter()
    for members in batches_of_one_length(some, _together(model), BUDGET):
        importance(model, model.collate([some[i] for i in members]))
    return 1000 * (time.perf_counter() - started) / max(1, len(some))


def pad_rows(rows: Sequence[Sequence[float]]) -> Tensor:
    """Ragged rows as one tensor with NaN beyond their ends."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[float("nan")] * (width - len(row))] for row in rows], dtype=torch.float64).reshape(
        len(rows), width
    )
