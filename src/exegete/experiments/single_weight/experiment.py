"""Single weight: does removing the highest weight change the output more than removing another? (Serrano & Smith 2019)

i* = argmax α, r = a random other key, p the output, q_R the output without the keys R (`common.removal`):

    ΔJS = JS(p, q_{i*}) − JS(p, q_r),   against α_{i*} − α_r   (section 4, figure 3)

in natural logarithms. If attention says what matters, ΔJS is above 0, the more so the larger the difference of weights.
Exchangeable keys would give as many values above 0 as below. A text of one key has no other: null, and counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from torch import Tensor

from exegete.experiments.common.one_removal import OneRemoved
from exegete.experiments.common.removal import Single
from exegete.experiments.common.summaries import by_keys, interval_of, or_none
from exegete.experiments.common.tallies import share_of, values_by_seed
from exegete.measures.divergence import jsd

KEYS = ("task", "model", "split")
TENTHS = 10
NEGATIVE = -1e-12  # below it ΔJS is negative and not rounding


@dataclass(frozen=True)
class SingleWeight(OneRemoved):
    """The highest weight against a random other one, by the output."""

    of_rows = ("scatter", "negatives")

    def compared(self, found: Single) -> dict[str, Tensor]:
        """Both divergences, value = ΔJS."""
        p, top, other = (logits.softmax(-1) for logits in (found.original, found.top, found.other))
        js_top, js_random = jsd(p, top), jsd(p, other)
        return {"js_top": js_top, "js_random": js_random, "value": js_top - js_random}

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By task and model: mean ΔJS with interval, share of negative ones, and what had to be counted apart."""
        return by_keys(rows, KEYS, lambda group: _numbers(group) | _counts(group))

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """The summary by tenths of the difference of weights."""
        tenth = (pl.col("difference") * TENTHS).floor().clip(0, TENTHS - 1) / TENTHS
        cut = rows.filter(pl.col("value").is_not_null()).with_columns(tenth=tenth)
        by = (*KEYS, "tenth")
        return {"tenths": by_keys(cut.sort(by, maintain_order=True), by, _numbers)}


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    """Mean ΔJS and share of negative ones; exchangeable keys have a mean of 0."""
    mean = interval_of(values_by_seed(group, pl.col("value")), bound=math.log(2))
    below = share_of(group, pl.col("value") < NEGATIVE)
    return {
        "seeds": group["seed"].n_unique(),
        "n": mean.n,
        "undefined": group["value"].null_count(),
        "mean": or_none(group["value"].mean()),
        "std": or_none(group["value"].std(ddof=0)),
        "low": or_none(mean.low),
        "high": or_none(mean.high),
        "chance": 0.0,
        "negative": or_none(below.mean),
        "negative_low": or_none(below.low),
        "negative_high": or_none(below.high),
    }


def _counts(group: pl.DataFrame) -> dict[str, int]:
    """Texts where r is i* (legacy), and where nothing is left without i*: their q_{i*} is the bias's."""
    return {name: int(group[name].sum()) for name in ("same", "emptied")}
