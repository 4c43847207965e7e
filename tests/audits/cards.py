"""Scorecards made up for tests: what each specification of a deciding test found, and what follows."""

from collections.abc import Mapping

from exegete.audits.goals import votes
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import declared
from exegete.page.section import Outcome, Variant, Verdict

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
    threshold = declared()[name].threshold(declared()[name].margin)
    each: dict[str, Outcome] = dict(ways or _ways(outcome))
    found = tuple(variant(way, said, threshold) for way, said in each.items())
    first = found[0]
    return Verdict(
        name, "t", "m", "?", first.statistic, 100, (first.low, first.high), 0.9, 0.0, "c", outcome, "this checkpoint",
        "p", first.name, votes=votes(name, goal), threshold=threshold, variants=found,
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
