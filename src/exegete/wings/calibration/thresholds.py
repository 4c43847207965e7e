"""Thresholds: would other families have chosen other ones? The check against tuning, one family left out at a time.

The audit has three thresholds, of M, F and Γ. Here all are chosen anew on all families but one (the fewest wrong
answers, then the most right ones, then what is nearest to ours), and the family that was left out is judged by them.
Answers at other thresholds follow from the kept ends of intervals, by the rules of `exegete.answers.grades` without
what they say of specifications that differ, or of one that forbids a Yes.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl

from exegete.plugins import TOLERANCE, Criteria
from exegete.wings.calibration.count import BETWEEN, excludes, settles
from exegete.wings.calibration.draws import mediation_of

READS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
CARRIES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
RANKS = (0.6, 0.7, 0.75, 0.8)
IntervalEnds = Mapping[str, Sequence[float]]  # by specification: mean, low at 5 %, high at the error of a No
DrawLine = Mapping[str, Any]
Thresholds = tuple[float, float, float]  # thresholds of M, F and Γ


def answer_at(line: DrawLine, at: Thresholds, partly: float, tolerance: float) -> str:
    """What the audit would have said of a draw with other thresholds."""
    reads, carries, ranks = at
    ends = line["ends"]
    if _below(ends["reads"], reads) or _below(ends["carries"], carries) or _below(ends["ranks"], partly, tolerance):
        return "no"
    if not (_above(ends["reads"], reads) and _above(ends["carries"], carries)):
        return "undecided"
    if _above(ends["ranks"], ranks, tolerance):
        return "yes"
    between = _above(ends["ranks"], partly, tolerance) and _below(ends["ranks"], ranks, tolerance)
    return "partly" if between else "undecided"


def _above(ends: IntervalEnds, edge: float, tolerance: float = TOLERANCE) -> bool:
    return bool(ends) and all(mean >= edge and low >= edge - tolerance for mean, low, _ in ends.values())


def _below(ends: IntervalEnds, edge: float, tolerance: float = TOLERANCE) -> bool:
    return bool(ends) and all(mean < edge and high <= edge + tolerance for mean, _, high in ends.values())


def leave_one_family_out(lines: Sequence[DrawLine], criteria: Criteria) -> pl.DataFrame:
    """A row per family: the thresholds that all others choose, and its own right and wrong answers under them."""
    kept = [line for line in lines if line["truth"] != BETWEEN]
    ours = (criteria["reads"].margin, criteria["carries"].margin, criteria["ranks"].margin)
    grid = sorted({ours, *product(READS, CARRIES, RANKS)}, key=lambda at: sum(map(abs, map(float.__sub__, at, ours))))
    counts = {at: _counts(kept, at, criteria["ranks"].partly or 0.0) for at in grid}
    rows = []
    for family in dict.fromkeys(line["family"] for line in kept):
        best = max(grid, key=lambda at: _score(counts[at], family))  # of equals the first: the nearest to ours
        (right, wrong, n), (own_right, own_wrong, _) = counts[best][family], counts[ours][family]
        rows.append({
            "family": family, "reads": best[0], "carries": best[1], "ranks": best[2], "n": n, "right": right,
            "wrong": wrong, "right_at_ours": own_right, "wrong_at_ours": own_wrong,
        })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


Counts = dict[str, tuple[int, int, int]]  # by family: right, wrong, n


def _counts(lines: Sequence[DrawLine], at: Thresholds, partly: float) -> Counts:
    found: Counts = {}
    for line in lines:
        said = answer_at(line, at, partly, mediation_of(line["audit"]).tolerance)
        right, wrong, n = found.get(line["family"], (0, 0, 0))
        found[line["family"]] = (right + settles(said, line["truth"]), wrong + excludes(said, line["truth"]), n + 1)
    return found


def _score(counts: Counts, without: str) -> tuple[int, int]:
    """Fewest wrong, then most right, of all other families."""
    others = [count for family, count in counts.items() if family != without]
    return -sum(wrong for _, wrong, _ in others), sum(right for right, _, _ in others)
