"""Scorecards made up for tests: what each specification of a deciding test found, and what follows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from exegete.answers.alternatives import Readable
from exegete.answers.answer import Known
from exegete.answers.context import MethodCost
from exegete.answers.goals import votes
from exegete.answers.grades import NO_BY_RANKS, DecidingTest, Grading, grade_test
from exegete.answers.scorecard import Audit
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests
from exegete.report.section import Outcome, Variant, Verdict

WAYS = ("delete alone, log-odds", "resample alone, log-odds", "unknown in company, probability")
FAR = 0.2  # of a mean from its threshold, where a specification is sure
VOID = "in 80% of the texts no word moves the prediction by ½ log-odds"


def variant(name: str, said: Outcome, threshold: float, at: float | None = None) -> Variant:
    """One specification: sure, or at its threshold."""
    off = {"holds": FAR, "fails": -FAR}.get(said, 0.0)
    mean = threshold + off if at is None else at
    return Variant(name, mean, mean - FAR / 2, mean + FAR / 2, 100, said)


def verdict(name: str, outcome: Outcome, ways: Mapping[str, Outcome] | None = None, goal: Goal = "faithful") -> Verdict:
    """A line of a test that is asked in several ways; `hangs on` holds in the first, and fails in the others."""
    threshold = all_tests()[name].threshold(all_tests()[name].margin)
    each: dict[str, Outcome] = dict(ways or _ways(outcome))
    found = tuple(variant(way, said, threshold) for way, said in each.items())
    first = found[0]
    return Verdict(
        name, "t", "m", "?", first.statistic, 100, (first.low, first.high), 0.9, 0.0, "c", outcome, "this checkpoint",
        "p", first.name, votes=votes(name, goal), threshold=threshold,
        partly=all_tests()[name].partly, variants=found,
    )  # fmt: skip


def _ways(outcome: Outcome) -> dict[str, Outcome]:
    if outcome == "hangs on":
        return dict(zip(WAYS, ("holds", "fails", "fails"), strict=True))
    return dict.fromkeys(WAYS, outcome)


def still() -> Verdict:
    """`locates` where weights do nothing: all of its specifications are void."""
    found = tuple(Variant(way, void="zeroing a weight hardly changes anything", verdict="cannot tell") for way in WAYS)
    decides = votes("locates", "faithful")
    return Verdict("locates", "t", "m", verdict="cannot tell", about="this checkpoint", votes=decides, variants=found)


def around(mean: float, n: int = 400, off: float = 0.02) -> Tensor:
    """Values of texts that lie alternately above and below a mean, [seed, text]."""
    signs = torch.ones(n, dtype=torch.float64)
    signs[1::2] = -1
    return (mean + off * signs)[None]


def loose(mean: float, off: float = 0.42, n: int = 40) -> Tensor:
    """Few values, far apart: hardly anything is sure of their mean."""
    return around(mean, n, off)


Values = Mapping[str, Tensor]


def values_of(*means: float | Tensor) -> Values:
    """By specification: sure of a mean, unless values are given."""
    return {way: mean if isinstance(mean, Tensor) else around(mean) for way, mean in zip(WAYS, means, strict=False)}


def grading(
    ranks: Values,
    reads: Values | None = None,
    carries: Values | None = None,
    void: Mapping[str, str] = MappingProxyType({}),
    edges: tuple[float, float] = (0.7, 0.5),
    tolerance: float = 0.03,
) -> Grading:
    """Of made-up values; M and F are above their margins, unless given."""
    sure = dict.fromkeys(ranks, around(0.6))
    margins = (all_tests()[name].margin for name in ("reads", "carries"))
    others = [
        grade_test(DecidingTest(sure if values is None else values, void, (margin,), least=least))
        for values, margin, least in zip((reads, carries), margins, (-1.0, 0.0), strict=True)
    ]
    of_ranks = grade_test(DecidingTest(ranks, void, edges, tolerance, NO_BY_RANKS))
    return Grading(others[0], of_ranks, others[1])


def grading_that(reads: Outcome, ranks: Outcome, carries: Outcome = "holds") -> Grading:
    """What fits lines of these outcomes."""

    def values(said: Outcome, high: float, low: float, open_: Tensor) -> Values:
        if said == "hangs on":
            return values_of(high, low, low)
        return values_of(*[{"holds": high, "fails": low}.get(said, open_)] * len(WAYS))

    return grading(
        values(ranks, 0.9, 0.3, loose(0.58)),
        values(reads, 0.6, 0.05, loose(0.25)),
        values(carries, 0.6, 0.05, loose(0.2, 0.2)),
    )


def known_of(grades: Grading, **more: Any) -> Known:
    """What is known of the only model beside its lines."""
    return Known(grades={("t", "m"): grades}, **more)


def readable(method: str, gamma: float, cost: MethodCost | None = None, better: float = 0.1) -> Readable:
    """A method to read, with its number."""
    gain = Variant("all", better, better - 0.05, better + 0.05, 100, "holds" if better > 0.05 else "cannot tell")
    return Readable(method, gamma, gamma - 0.04, gamma + 0.04, 100, gain, (), cost)


def told(audit: Audit) -> str:
    """The answer, and what informs and does not decide."""
    return "\n\n".join([audit.answer, *audit.findings])
