"""Thresholds: would other families have chosen other ones? The check against tuning, one family left out at a time.

The audit has two thresholds, of M and of Γ. Here both are chosen anew on all families but one (the fewest wrong
answers, then the most right ones, then what is nearest to ours), and the family that was left out is judged by them.
Answers at other thresholds follow from the kept ends of intervals, by the rules of `exegete.audits.rules`; at ours they
are the answers that the audit gave.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl

from exegete.calibration.count import BETWEEN, SAYS_YES

READS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
RANKS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
Ends = Mapping[str, Sequence[float]]  # by specification: mean, then low and high at 5 %, 2.5 % and the surest level
Line = Mapping[str, Any]


def answer_at(line: Line, reads: float, ranks: float) -> str:
    """What the audit would have said of a draw with other thresholds."""
    found: dict[str, str] = {}
    tests = {"reads": (line["ends"]["reads"], reads), "ranks": (line["ends"]["ranks"], ranks)}
    failed = _failed(tests)
    for name, (ends, threshold) in tests.items():
        found[name] = _outcome(ends, threshold, name in failed)
    if set(found.values()) == {"holds"}:
        return "yes by size" if line["verdicts"].get("supports") == "fails" else "yes"
    if "fails" in found.values():
        return "no"
    return "hangs on" if "hangs on" in found.values() else "undecided"


def _failed(tests: Mapping[str, tuple[Ends, float]]) -> set[str]:
    """Tests that fail in all specifications: one at half the error, then the other at all of it (Holm 1979)."""
    asked = {name: (ends, threshold) for name, (ends, threshold) in tests.items() if ends}
    high = {1: 2, 2: 4}  # the place of the upper end among all, by the number of tests that are open
    failed: set[str] = set()
    while left := [name for name in asked if name not in failed]:
        now = [n for n in left if all(end[high[len(left)]] < asked[n][1] for end in asked[n][0].values())]
        if not now:
            break
        failed |= set(now)
    return failed


def _outcome(ends: Ends, threshold: float, failed: bool) -> str:
    if ends and all(end[1] > threshold for end in ends.values()):
        return "holds"
    if failed:
        return "fails"
    surely = any(end[5] > threshold for end in ends.values()) and any(end[6] < threshold for end in ends.values())
    return "hangs on" if surely else "cannot tell"


def left_out(lines: Sequence[Line], ours: tuple[float, float]) -> pl.DataFrame:
    """A row per family: the thresholds that all others choose, and its own right and wrong answers under them."""
    kept = [line for line in lines if line["truth"] != BETWEEN]
    grid = sorted(product(READS, RANKS), key=lambda at: abs(at[0] - ours[0]) + abs(at[1] - ours[1]))
    counts = {at: _counts(kept, at) for at in grid}  # by thresholds and family: right, wrong, n
    rows = []
    for family in dict.fromkeys(line["family"] for line in kept):
        best = max(grid, key=lambda at: _score(counts[at], family))  # of equals the first: the nearest to ours
        (right, wrong, n), (own_right, own_wrong, _) = counts[best][family], counts[ours][family]
        rows.append({
            "family": family, "reads": best[0], "ranks": best[1], "n": n, "right": right, "wrong": wrong,
            "right_at_ours": own_right, "wrong_at_ours": own_wrong,
        })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


Counts = dict[str, tuple[int, int, int]]


def _counts(lines: Sequence[Line], at: tuple[float, float]) -> Counts:
    found: Counts = {}
    for line in lines:
        said = answer_at(line, *at)
        says = "yes" if said in SAYS_YES else said
        right, wrong, n = found.get(line["family"], (0, 0, 0))
        is_wrong = says in ("yes", "no") and says != line["truth"]
        found[line["family"]] = (right + (says == line["truth"]), wrong + is_wrong, n + 1)
    return found


def _score(counts: Counts, without: str) -> tuple[int, int]:
    """Fewest wrong, then most right, of all other families."""
    others = [count for family, count in counts.items() if family != without]
    return -sum(wrong for _, wrong, _ in others), sum(right for right, _, _ in others)
