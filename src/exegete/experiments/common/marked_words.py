"""Marked words: the words of a subject's texts that are the answer, and what experiments on them share."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError, UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.summaries import by_keys, columns, interval_of, or_none
from exegete.tasks.example import Example

MarkRanking = Literal["signed", "magnitude"]
ALL, CORRECT = "all", "correct"  # texts


def check_methods(methods: Sequence[str], experiment: str) -> None:
    """At least one method, and every one once."""
    if not methods or len(set(methods)) < len(methods):
        raise UsageError(f"experiment '{experiment}': name at least one method, and every one once")


def marks(examples: Sequence[Example], width: int) -> Tensor:
    """Which words of every text are in its rationale: bool [example, word]."""
    marked = torch.zeros(len(examples), width, dtype=torch.bool)
    for row, e in enumerate(examples):
        if any(not 0 <= place < len(e) for place in e.rationale):
            raise ExegeteError(
                f"the rationale of example {e.id} marks word {max(e.rationale)}, but the text has {len(e)} words: "
                "words count from 0"
            )
        marked[row, list(e.rationale)] = True
    return marked


def ranking_scores(subject: Subject, method: str, by: MarkRanking) -> Tensor:
    """The scores that order the words: as they are (for the class first, against it last), or their size."""
    scores = subject.scores[method]
    return scores.abs() if by == "magnitude" else scores


def text_columns(subject: Subject) -> dict[str, Any]:
    """What every row says of its text."""
    labels = subject.task.labels
    return {
        "example": [e.id for e in subject.examples],
        "n": [len(e) for e in subject.examples],
        "marked": [len(e.rationale) for e in subject.examples],
        "gold": pl.Series([subject.task.gold(e) for e in subject.examples], dtype=pl.String),
        "predicted": [labels[c] for c in subject.predicted.tolist()],
        "correct": [e.label == c for e, c in zip(subject.examples, subject.predicted.tolist(), strict=True)],
    }


def values_frame(texts: Mapping[str, Any], said: Mapping[str, Any], value: Tensor, chance: Tensor) -> pl.DataFrame:
    """Rows of one measure; what is undefined is null."""
    numbers = {"value": value.double().numpy(), "chance": chance.double().numpy()}
    frame = pl.DataFrame(dict(texts)).with_columns(**{name: pl.lit(content) for name, content in said.items()})
    return frame.with_columns(**{name: pl.Series(column).fill_nan(None) for name, column in numbers.items()})


def over_texts(group: pl.DataFrame) -> dict[str, float | int | None]:
    """Seeds, n, number undefined, mean, population std, interval and chance of the values of some rows.

    Chance is the mean over the texts that have a value.
    """
    values = columns(group.with_columns(every=pl.lit(0)), ["every"]).values[0]  # [seed, example]
    interval = interval_of(values)
    low, high = (or_none(end) for end in (interval.low, interval.high))
    defined = group.filter(pl.col("value").is_not_null())
    return {
        "seeds": group["seed"].n_unique(),
        "n": defined.height,
        "undefined": group.height - defined.height,
        "mean": or_none(defined["value"].mean()),
        "std": or_none(defined["value"].std(ddof=0)),
        "low": None if low is None else max(0.0, low),  # few seeds give t-intervals beyond what is possible
        "high": None if high is None else min(1.0, high),
        "chance": or_none(defined["chance"].mean()),
    }


def all_and_right(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Numbers by keys, over all texts and over those predicted right, which the column `texts` says."""
    right = rows.filter("correct").with_columns(texts=pl.lit(CORRECT))
    both = pl.concat([rows.with_columns(texts=pl.lit(ALL)), right])
    return by_keys(both, keys, over_texts)
