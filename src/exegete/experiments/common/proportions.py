"""Proportions: how many texts do this, with an interval, and do more do this than that?"""

import math

import polars as pl
import torch
from scipy import stats
from torch import Tensor

from exegete.experiments.common.summaries import columns, interval_of
from exegete.measures.proportions import wilson
from exegete.measures.statistics import Interval


def values_of(group: pl.DataFrame, value: pl.Expr) -> Tensor:
    """An expression over rows of one cell, [seed, example]; NaN where there is none."""
    if group.is_empty():
        return torch.zeros(1, 0, dtype=torch.float64)
    kept = group.select("seed", "example", value=value.cast(pl.Float64), every=pl.lit(0))
    return columns(kept, ["every"]).values[0]


def share_of(group: pl.DataFrame, flag: pl.Expr) -> Interval:
    """The share of texts with a flag among those where it is defined.

    One seed: Wilson's interval. Several: they share their texts, so the interval is over seeds and texts, and at least
    Wilson's of one seed's number of texts.
    """
    values = values_of(group, flag)
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
    return float(stats.binomtest(above, above + below).pvalue) if above + below else 1.0
