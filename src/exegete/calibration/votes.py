"""Voting: from verdicts on models whose truth is known to the tests that may decide an audit.

    power = share of audits that say *holds* where attention decides everything (100 %)
    false alarm = share of audits that say *holds* where it decides nothing (0 %), or on the worst of the null models

A test tells the ends apart if the interval of its power less its share of *holds* at 0 % lies above 0 (Newcombe 1998,
method 10), and does not if the interval lies below `WORTH`. It votes if it tells the ends apart, and if no more than
`ALARM` of its audits at any rung where there is nothing to find say *holds*.
"""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from exegete.measures.proportions import clopper_pearson, wilson

WORTH = 0.5  # a test that is surely worth less than so much power can't tell the ends apart
ALARM = 0.05  # false alarms that are tolerated
ALL = "all"  # texts of an audit
FAITHFUL, UNFAITHFUL, NULL = "100 %", "0 %", "untrained"  # rungs; the last begins with it
VERDICTS = ("holds", "fails", "cannot tell")
Counts = Mapping[str, tuple[int, int]]  # by rung: audits that say *holds*, of how many


def newcombe(first: tuple[int, int], second: tuple[int, int], level: float = 0.95) -> tuple[float, float]:
    """The interval of a difference p − q of independent shares, each a count and its n (Newcombe 1998, method 10).

    With Wilson's intervals [l, u] of p and [l', u'] of q: p − q − √((p − l)² + (u' − q)²) to
    p − q + √((u − p)² + (q − l')²).

    >>> [round(end, 3) for end in newcombe((5, 5), (0, 5))]
    [0.386, 1.0]
    """
    (p, n), (q, m) = ((count / of, of) for count, of in (first, second))
    (low, high), (low_2, high_2) = wilson(p, n, level), wilson(q, m, level)
    return p - q - math.hypot(p - low, high_2 - q), p - q + math.hypot(high - p, q - low_2)


def tally(verdicts: pl.DataFrame) -> pl.DataFrame:
    """How many audits said what, per test and rung, and the interval of the share that said *holds*.

    A test of a way of training is counted by groups of seeds where there are any, all others by single seeds; what is
    not testable is no audit. The interval is Clopper & Pearson's (1934). Audits of disjoint texts share their training,
    so theirs is about these models; that of all texts is about new trainings.
    """
    recipes = verdicts.filter(pl.col("recipe"), pl.col("seeds") == 1)["test"].unique().implode()
    is_recipe = pl.col("test").is_in(recipes)
    most = pl.col("seeds").max().over("test", "rung", "texts")
    kept = verdicts.filter(
        pl.when(is_recipe).then(pl.col("seeds") == most).otherwise(pl.col("seeds") == 1),
        pl.col("verdict").is_in(VERDICTS),
    )
    counted = kept.group_by("test", "rung", "seeds", "texts", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        *((pl.col("verdict") == said).sum().cast(pl.Int64).alias(said.replace(" ", "_")) for said in VERDICTS),
    )
    ends = [clopper_pearson(held, n) for held, n in counted.select("holds", "n").iter_rows()]
    return counted.with_columns(
        share=pl.col("holds") / pl.col("n"),
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
    ).sort("test", _place("rung"), "rung", pl.col("texts") != ALL)


def _place(column: str) -> pl.Expr:
    """Rungs in order: 0 % to 100 %, then what was never trained."""
    share = pl.col(column).str.extract(r"^([\d.]+) %$").cast(pl.Float64)
    return share.fill_null(math.inf)


def votes(frame: pl.DataFrame) -> pl.DataFrame:
    """Whether every test tells the ends apart, and votes; the one with the largest difference first."""
    whole = frame.filter(pl.col("texts") == ALL)
    found = [_vote(str(test), group) for (test,), group in whole.group_by("test", maintain_order=True)]
    return pl.DataFrame(found, infer_schema_length=None).sort(
        "difference", "test", descending=[True, False], nulls_last=True
    )


def _vote(test: str, group: pl.DataFrame) -> dict[str, Any]:
    """One test's line, from its rungs over all texts."""
    counts = {row["rung"]: (row["holds"], row["n"]) for row in group.to_dicts()}
    if FAITHFUL not in counts or UNFAITHFUL not in counts:
        return _line(test, counts, None, "cannot tell")
    (held, n), (false, m) = counts[FAITHFUL], counts[UNFAITHFUL]
    low, high = newcombe(counts[FAITHFUL], counts[UNFAITHFUL])
    tells = "yes" if low > 0 else "no" if high < WORTH else "cannot tell"
    return _line(test, counts, (held / n - false / m, low, high), tells)


def _line(test: str, counts: Counts, ends: tuple[float, float, float] | None, tells: str) -> dict[str, Any]:
    empty = {rung: held / n for rung, (held, n) in counts.items() if rung == UNFAITHFUL or rung.startswith(NULL)}
    worst = max(empty, key=empty.__getitem__) if empty else None
    alarm = None if worst is None else empty[worst]
    power = counts[FAITHFUL][0] / counts[FAITHFUL][1] if FAITHFUL in counts else None
    difference, low, high = ends or (None, None, None)
    kept = tells == "yes" and alarm is not None and alarm <= ALARM
    return {
        "test": test, "tells_apart": tells, "power": power, "false_alarm": alarm,
        "difference": difference, "low": low, "high": high,
        "n": sum(n for rung, (_, n) in counts.items() if rung in (FAITHFUL, UNFAITHFUL)),
        "n_null": sum(n for rung, (_, n) in counts.items() if rung.startswith(NULL)),
        "votes": kept, "why": _why(counts, tells, kept, worst),
    }  # fmt: skip


def _why(counts: Counts, tells: str, kept: bool, worst: str | None) -> str:
    """The reason, in a sentence."""
    if FAITHFUL not in counts or UNFAITHFUL not in counts:
        return "it was not asked at both ends of the ladder"
    at = {rung: "{} of {}".format(*counts[rung]) for rung in counts}
    said = f"it holds in {at[FAITHFUL]} audits of faithful models and in {at[UNFAITHFUL]} of unfaithful ones"
    if tells == "no":
        return f"it can't tell the ends of the ladder apart: {said}"
    if tells == "cannot tell":
        return f"too few audits to say whether it tells the ends of the ladder apart: {said}"
    if not kept:
        nothing = "unfaithful models" if worst == UNFAITHFUL else f"{worst} models"
        return f"too many false alarms: it holds in {at[worst or UNFAITHFUL]} audits of {nothing}"
    return f"it tells the ends of the ladder apart: {said}"
