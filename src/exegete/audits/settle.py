"""Settling: how many texts or seeds would turn a *cannot tell* into a verdict.

Intervals of means shrink as 1/√n. An interval of half-width w around a mean that lies d from the margin leaves it
behind with n (w/d)² texts, if the mean stays where it is.
"""

import math

from exegete.audits.scorecard import SEEDS_FOR_A_RECIPE
from exegete.measures.statistics import Interval

MOST = 1_000_000  # texts that nobody will have
SPARE = 1.1  # the mean won't stay exactly where it is


def settling(interval: Interval, threshold: float, seeds: int, recipe: bool) -> str:
    """A sentence, for a test that could not tell."""
    if seeds < SEEDS_FOR_A_RECIPE and (recipe or seeds > 1):
        return f"A claim about training needs {SEEDS_FOR_A_RECIPE} seeds or more; this has {seeds}."
    if math.isnan(interval.mean) or interval.n == 0:
        return "No text has a number here."
    apart = abs(interval.mean - threshold)
    half = interval.mean - interval.low if interval.mean > threshold else interval.high - interval.mean
    needed = math.inf if apart == 0 else interval.n * (half / apart) ** 2 * SPARE
    if needed > MOST:
        return "No number of texts would do: the statistic lies at its margin."
    if seeds > 1:  # more texts don't help where trainings differ
        more = max(seeds + 1, math.ceil(seeds * needed / interval.n - 1e-9))
        return f"About {more} seeds would settle it, if their mean stays where it is; this has {seeds}."
    more = _round(max(needed, interval.n + 1))
    return f"About {more:,} texts would settle it, if their mean stays where it is; this has {interval.n:,}."


def _round(number: float) -> int:
    """Up to two digits."""
    digits = max(0, math.floor(math.log10(number)) - 1)
    unit = int(10**digits)
    return math.ceil(number / unit - 1e-9) * unit
