"""Rules of error: what a test that is asked in several ways says, and how sure it must be.

No specification is the right one, so a test *holds* if it holds in every one that counts, and *fails* likewise: both
are intersections (Berger 1982), each at 5 % one-sided, without any correction for their number. Of several deciding
tests a *Yes* needs all, an intersection again. A *No* needs one, a union: failures are corrected for the number of
tests (Holm 1979), with the largest p over specifications. A test *hangs on* the specification if one of them surely
holds and another surely fails: the search for such a pair is one among all tests × specifications, so each end must be
sure at 5 % divided by their number. Everything between can't be told.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from torch import Tensor

from exegete.measures.bounds import bounded_mean
from exegete.report.section import Outcome, Variant

ERROR = 0.05
TEXTS = 40  # fewer don't give intervals that keep their word


class Varying(NamedTuple):
    """A test before it is judged."""

    threshold: float
    bound: float
    values: Mapping[str, Tensor]  # by specification: [seed, example]
    void: Mapping[str, str]  # specifications that don't count, and why


class Ruled(NamedTuple):
    """What a test says, and what every specification does."""

    outcome: Outcome
    variants: tuple[Variant, ...]
    decisive: str  # the specification whose interval lies worst for the verdict; none where none counts


def apply_rules(tests: Sequence[Varying], error: float = ERROR) -> list[Ruled]:
    """The tests of one family, one-sided, each with this error at most."""
    judged = [_Judged(test, error) for test in tests]
    total = sum(len(each.counted) for each in judged)
    failed = _failed(judged, error)
    return [each.ruled(place in failed, error / max(1, total)) for place, each in enumerate(judged)]


class _Judged:
    """A test, its specifications that count, and their intervals at any error."""

    def __init__(self, test: Varying, error: float) -> None:
        few = {name: _few(values) for name, values in test.values.items() if name not in test.void}
        self.test, self.error = test, error
        self.void = dict(test.void) | {name: why for name, why in few.items() if why}
        self.counted = [name for name in test.values if name not in self.void]
        self.interval = cache(lambda name, alpha: bounded_mean(test.values[name], alpha, test.bound))

    def holds(self, name: str, alpha: float) -> bool:
        return bool(self.interval(name, alpha).low > self.test.threshold)

    def fails(self, name: str, alpha: float) -> bool:
        return bool(self.interval(name, alpha).high < self.test.threshold)

    def all_fail(self, alpha: float) -> bool:
        return bool(self.counted) and all(self.fails(name, alpha) for name in self.counted)

    def outcome(self, failed: bool, sure: float) -> Outcome:
        if self.counted and all(self.holds(name, self.error) for name in self.counted):
            return "holds"
        if failed:
            return "fails"
        both = any(self.holds(n, sure) for n in self.counted) and any(self.fails(n, sure) for n in self.counted)
        return "hangs on" if both else "cannot tell"

    def ruled(self, failed: bool, sure: float) -> Ruled:
        outcome = self.outcome(failed, sure)
        variants = tuple(
            self._variant(name, sure if outcome == "hangs on" else self.error) for name in self.test.values
        )
        return Ruled(outcome, variants, self._decisive(outcome))

    def _variant(self, name: str, alpha: float) -> Variant:
        mean, low, high, n, _ = self.interval(name, self.error)
        if name in self.void:
            return Variant(name, _finite(mean), _finite(low), _finite(high), n, "cannot tell", self.void[name])
        said: Outcome = "holds" if self.holds(name, alpha) else "fails" if self.fails(name, alpha) else "cannot tell"
        return Variant(name, _finite(mean), _finite(low), _finite(high), n, said)

    def _decisive(self, outcome: Outcome) -> str:
        """Of what holds the lowest end, of what fails the highest; else the one nearest to its threshold."""
        ends = {name: self.interval(name, self.error) for name in self.counted}
        if outcome == "holds":
            return min(ends, key=lambda name: ends[name].low)
        if outcome == "fails":
            return max(ends, key=lambda name: ends[name].high)
        return min(ends, key=lambda name: abs(ends[name].mean - self.test.threshold), default="")


def _few(values: Tensor) -> str:
    """Why a specification has too few texts, or nothing."""
    texts = int((~values.isnan()).sum(-1).min())
    return "" if texts >= TEXTS else f"{texts} texts say something, and a verdict needs {TEXTS}"


def _failed(judged: Sequence[_Judged], error: float) -> set[int]:
    """The tests that fail in all of their specifications, corrected for the number of tests."""
    left, failed = [place for place, each in enumerate(judged) if each.counted], set[int]()
    while left:
        now = [place for place in left if judged[place].all_fail(error / len(left))]
        if not now:
            break
        failed |= set(now)
        left = [place for place in left if place not in now]
    return failed


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
