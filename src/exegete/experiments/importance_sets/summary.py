"""Summaries of importance sets: every scheme on its own, schemes in pairs, and the paper's mean ± std."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import polars as pl
from scipy import stats
from torch import Tensor

from exegete.experiments.common.proportions import share_of, sign_test, values_of
from exegete.experiments.common.summaries import by_keys, interval_of, number
from exegete.measures.statistics import Interval

CELL = ("task", "model", "split")
EQUAL = 1e-9  # fractions that differ by less are means of the same ones


def summarised(rows: pl.DataFrame) -> pl.DataFrame:
    """By cell and scheme: censored at 1 (all texts), and `kept_…` with the paper's exclusion (texts that flip).

    `chance` is the censored mean of random orders in the same cell.
    """
    keys = (*CELL, "scheme")
    found = by_keys(rows, keys, _numbers)
    chance = found.filter(pl.col("scheme") == "random").select(*CELL, chance="mean")
    return found.join(chance, on=CELL, how="left", maintain_order="left")


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    kept = pl.when("flips").then("first")
    return {
        "seeds": group["seed"].n_unique(),
        "undefined": group["value"].null_count(),
        "excluded": int(group["excluded"].sum()),
        "emptied": int(group["emptied"].sum()),
        **_located(group, pl.col("value"), ""),
        **_located(group, kept, "kept_"),
        "mass": number(group["mass"].mean()),
        "kept_mass": number(group.filter("flips")["first_mass"].mean()),
    }


def _located(group: pl.DataFrame, value: pl.Expr, prefix: str) -> dict[str, Any]:
    """n, mean and median of some values, with intervals."""
    values = values_of(group, value)
    mean, median = interval_of(values), median_interval(values)
    found = {
        "n": mean.n, "mean": mean.mean, "low": mean.low, "high": mean.high,
        "median": median.mean, "median_low": median.low, "median_high": median.high,
    }  # fmt: skip
    bounded = {name: v if name == "n" else number(v) for name, v in found.items()}
    return {prefix + name: _within(name, v) for name, v in bounded.items()}


def _within(name: str, value: float | None) -> float | None:
    """Few seeds give t-intervals beyond what is possible."""
    return value if value is None or name == "n" else min(max(value, 0.0), 1.0)


def median_interval(values: Tensor, level: float = 0.95) -> Interval:
    """The median, between two order statistics that hold the true one by the binomial distribution: [seed, example].

    Of several seeds, whose texts are the same, the widest: from the lowest end of any to the highest.
    """
    defined = values[~values.isnan()]
    undefined = values.numel() - len(defined)
    if not len(defined):
        return Interval(float("nan"), float("nan"), float("nan"), 0, undefined)
    ends = [_order_statistics(seed[~seed.isnan()], level) for seed in values if not seed.isnan().all()]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return Interval(float(defined.quantile(0.5)), low, high, len(defined), undefined)


def _order_statistics(values: Tensor, level: float) -> tuple[float, float]:
    n = len(values)
    below = int(stats.binom.ppf((1 - level) / 2, n, 0.5))  # values that may lie below the median, at the least
    ordered = values.sort().values
    return float(ordered[max(0, below - 1)]), float(ordered[min(n - 1, n - below)])


def paired(rows: pl.DataFrame) -> pl.DataFrame:
    """Schemes against each other on the same texts: the mean difference of fractions, and who needs fewer keys.

    `texts` "all" is censored at 1; "flipped" keeps texts that both flip. p is the exact sign test's.
    """
    found = [
        dict(zip(CELL, key, strict=True)) | pair
        for key, group in rows.partition_by(CELL, as_dict=True, maintain_order=True).items()
        for pair in _pairs(group)
    ]
    return pl.DataFrame(found, schema_overrides={"p": pl.Float64}, infer_schema_length=None)


def _pairs(cell: pl.DataFrame) -> Iterator[dict[str, Any]]:
    by_scheme = cell.partition_by("scheme", as_dict=True, maintain_order=True)
    for (first, a), (second, b) in combinations(by_scheme.items(), 2):
        both = a.join(b, on=["seed", "example"], suffix="_b", maintain_order="left")
        said = {"first": first[0], "second": second[0]}
        yield said | {"texts": "all"} | _compared(both, pl.col("value") - pl.col("value_b"))
        flipped = both.filter(pl.col("flips") & pl.col("flips_b"))
        yield said | {"texts": "flipped"} | _compared(flipped, pl.col("first") - pl.col("first_b"))


def _compared(both: pl.DataFrame, apart: pl.Expr) -> dict[str, Any]:
    """The first scheme's fraction less the second's: below 0, the first needs fewer keys."""
    mean = interval_of(values_of(both, apart), bound=1.0)
    fewer, more = share_of(both, apart < -EQUAL), share_of(both, apart > EQUAL)
    return {
        "n": mean.n,
        "difference": number(mean.mean),
        "low": number(mean.low),
        "high": number(mean.high),
        "fewer": number(fewer.mean),
        "fewer_low": number(fewer.low),
        "fewer_high": number(fewer.high),
        "more": number(more.mean),
        "p": sign_test(both, apart),
    }


def serrano_smith(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean ± std of fraction and mass as the paper has them: texts that flip, the first random order."""
    groups = rows.filter(pl.col("value").is_not_null()).group_by(*CELL, "scheme", maintain_order=True)
    kept = pl.col("flips")
    return groups.agg(
        n=kept.sum(),
        excluded=(~kept).sum(),
        fraction=pl.col("first").filter(kept).mean(),
        fraction_std=pl.col("first").filter(kept).std(),
        mass=pl.col("first_mass").filter(kept).mean(),
        mass_std=pl.col("first_mass").filter(kept).std(),
    )
