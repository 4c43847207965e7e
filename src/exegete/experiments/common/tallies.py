"""Tallies: what summaries count alike: values by seed, means with clipped intervals, shares of texts, the majority, F1.

F1 is that of the second class of two. Where there are more it is the mean over the classes that are gold anywhere in
the rows of a task, the same ones for every model, condition and seed: so differences of two F1 are over the same
classes, and a class that is only ever predicted counts where its texts are, as missed.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.experiments.common.summaries import columns, interval_of, or_none
from exegete.measures.proportions import sign_p, wilson
from exegete.measures.ratios import macro_f1_values
from exegete.measures.statistics import Interval

ALL = "all"
CLASSES = 8  # that a table shows one by one; with more, only all together
SAME = 1e-9  # a permuted JSD below it: permuting changes nothing, and its ratio is undefined


def values_by_seed(group: pl.DataFrame, value: pl.Expr) -> Tensor:
    """An expression over the rows of one cell: [seed, example], float64; NaN where there is no value."""
    if group.is_empty():
        return torch.zeros(1, 0, dtype=torch.float64)
    valued = group.with_columns(value=value.cast(pl.Float64), every=pl.lit(0))
    return columns(valued, ["every"]).values[0]


def clipped_mean(values: Tensor, least: float = 0.0, most: float | None = 1.0) -> dict[str, Any]:
    """n, mean and interval of values [seed, example]; few seeds give intervals beyond what can be: cut."""
    interval = interval_of(values)
    low, high = or_none(interval.low), or_none(interval.high)
    return {
        "n": interval.n,
        "mean": or_none(interval.mean),
        "low": None if low is None else max(least, low),
        "high": high if high is None or most is None else min(most, high),
    }


def mean_with_interval(group: pl.DataFrame, value: str, least: float = 0.0, most: float | None = 1.0) -> dict[str, Any]:
    """Seeds, n, undefined, mean and interval (cut to [least, most]) of a column over a group of texts."""
    found = clipped_mean(values_by_seed(group, pl.col(value)), least, most)
    return {
        "seeds": group["seed"].n_unique(),
        "n": found.pop("n"),
        "undefined": group[value].null_count(),
        **found,
    }


def shown_classes(predicted: pl.Series) -> list[str]:
    """The classes that are shown one by one: none where there are many, as the answers to questions are.

    Jain & Wallace show fewer than 4.
    """
    found = sorted(predicted.unique())
    return found if len(found) <= CLASSES else []


def class_of(by: str) -> pl.Expr:
    """The class of a row, or "all" where a task's model has more of them than are shown one by one."""
    few = pl.col(by).n_unique().over("task", "model") <= CLASSES
    return pl.when(few).then(pl.col(by)).otherwise(pl.lit(ALL))


def majority(texts: pl.DataFrame) -> float:
    """The share of the most frequent class among the texts."""
    return float(texts["gold"].value_counts()["count"].to_numpy().max()) / texts.height


def of_tasks(rows: pl.DataFrame) -> Iterator[tuple[list[str], pl.DataFrame]]:
    """The rows of every task, each with the classes that are gold anywhere in them; a translation has none."""
    for part in rows.partition_by("task", maintain_order=True):
        yield sorted(set(part["gold"].drop_nulls())) if "gold" in part.columns else [], part


def f1_by_seed(group: pl.DataFrame, predicted: str, classes: Sequence[str]) -> Tensor:
    """Values whose mean is F1 of the class `positive`, or of these classes where there is none: [seed, example]."""
    positive = group["positive"][0]
    counted = list(classes) if positive is None else [positive]
    place = {name: i for i, name in enumerate(counted)}
    said, gold = (
        values_by_seed(group, pl.col(column).replace_strict(place, default=len(place), return_dtype=pl.Int64))
        for column in (predicted, "gold")
    )
    return macro_f1_values(said, gold, range(len(counted)))


def share_of(group: pl.DataFrame, flag: pl.Expr) -> Interval:
    """The share of texts with a flag among those where it is defined.

    One seed: Wilson's interval. Several: they share their texts, so the interval is over seeds and texts, and at least
    Wilson's of one seed's number of texts.
    """
    values = values_by_seed(group, flag)
    n = int((~values.isnan()).sum())
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, values.numel())
    share = float(values.nanmean())
    low, high = wilson(share, int((~values.isnan()).any(0).sum()))
    if len(values) > 1:
        over = interval_of(values)
        low, high = min(low, max(0.0, over.low)), max(high, min(1.0, over.high))
    return Interval(share, low, high, n, values.numel() - n)


def sign_test(group: pl.DataFrame, sign: pl.Expr) -> float | None:
    """Exact p of "as many texts above 0 as below": McNemar's test where the signs are of two yes-no answers.

    Of several seeds the largest p, as their texts are the same: what it rejects, every seed rejects.
    """
    kept = group.select("seed", sign=sign.cast(pl.Float64).round(9)).drop_nulls()
    if kept.is_empty():
        return None
    return max(_exact(part["sign"]) for part in kept.partition_by("seed"))


def _exact(signs: pl.Series) -> float:
    above, below = int((signs > 0).sum()), int((signs < 0).sum())
    return sign_p(above, below)
