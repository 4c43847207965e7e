"""Counting: truth × answer by family, with bounds, and whether each family passes.

An answer *excludes* some truths (`calibration.truth`) and *settles* at most one. It is *wrong* where it excludes
the model's own, *right* where it settles that, and *open* otherwise. Grades of Γ are hardly (below .5), partly and
strong (above .7); an answer of two grades claims that specifications differ, one "about" an edge that they lie there.

| truth | wrong | right |
|---|---|---|
| strong | no, partly, at most partly, about partly, and any claim that grades differ | yes in any form |
| partly | yes in any form, no, and any claim that grades differ | partly |
| hardly | yes in any form, partly, at least partly, about strong, and any claim that grades differ | no |
| unread, flat | yes in any form, partly, at least partly, about strong, partly to strongly | no |

Every share of wrong answers has Clopper &
Pearson's one-sided bound at 95 %. A family passes with at most `ALARMS` wrong, at least `RIGHT` of its draws right, and
a bound of at most `PER_FAMILY`; all families together with a bound of at most `POOLED`.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from exegete.plugins import clopper_pearson

SAYS_YES = ("yes", "yes by size", "yes as")
DIFFER = ("partly to strongly", "hardly to partly", "hardly to strongly")
ANSWERS = (
    *SAYS_YES, "partly", "no", "at least partly", "at most partly", *DIFFER, "about partly", "about strong",
    "undecided",
)  # fmt: skip
_OF_NO = (*SAYS_YES, "partly", "at least partly", "about strong", "partly to strongly")
EXCLUDED_BY: Mapping[str, tuple[str, ...]] = {  # by truth
    "strong": ("no", "partly", "at most partly", "about partly", *DIFFER),
    "partly": (*SAYS_YES, "no", *DIFFER),
    "hardly": tuple(dict.fromkeys((*_OF_NO, *DIFFER))),
    "unread": _OF_NO,
    "flat": _OF_NO,
    "between": (),
}
SETTLED_BY: Mapping[str, tuple[str, ...]] = {
    "strong": SAYS_YES, "partly": ("partly",), "hardly": ("no",), "unread": ("no",), "flat": ("no",), "between": (),
}  # fmt: skip
ALL = "all families"
ALARMS, RIGHT = 1, 0.9
PER_FAMILY, POOLED = 0.10, 0.05
BETWEEN = "between"  # a draw that no answer is wrong about


def error_bound(wrong: int, n: int) -> float:
    """So much may be wrong at most, at 95 %, one-sided.

    >>> [round(error_bound(wrong, 60), 3) for wrong in (0, 1, 2)]
    [0.049, 0.077, 0.101]
    """
    return clopper_pearson(wrong, n, 0.9)[1] if n else 1.0


def excludes(answer: str, truth: str) -> bool:
    """Whether an answer says that the truth is another one: then it is wrong.

    >>> excludes("no", "partly"), excludes("at most partly", "partly"), excludes("undecided", "strong")
    (True, False, False)
    """
    return _known(answer) in EXCLUDED_BY[truth]


def settles(answer: str, truth: str) -> bool:
    """Whether an answer says what the truth is: then it is right."""
    return _known(answer) in SETTLED_BY[truth]


def _known(answer: str) -> str:
    if answer not in ANSWERS:
        raise ValueError(f"no answer of the audit is called '{answer}'")
    return answer


def _counts(draws: pl.DataFrame) -> tuple[int, int]:
    """How many answers are right, and how many wrong."""
    pairs = draws.select("answer", "truth").rows()
    return sum(settles(*pair) for pair in pairs), sum(excludes(*pair) for pair in pairs)


def count_draws(draws: pl.DataFrame) -> pl.DataFrame:
    """A row per audit and family, and one for all: how many draws have a truth, what was said of them, and bounds."""
    families = [_row(audit, family, group) for (audit, family), group in _groups(draws, "audit", "family")]
    pooled = [_row(audit, ALL, group) for (audit,), group in _groups(draws, "audit")]
    return pl.DataFrame([*families, *pooled], infer_schema_length=None)


def _groups(draws: pl.DataFrame, *by: str) -> Any:
    return draws.group_by(*by, maintain_order=True)


def _row(audit: Any, family: Any, group: pl.DataFrame) -> dict[str, Any]:
    kept = group.filter(pl.col("truth") != BETWEEN)
    said = {answer: kept.filter(pl.col("answer") == answer).height for answer in ANSWERS}
    (right, wrong), n, most = _counts(kept), kept.height, POOLED if family == ALL else PER_FAMILY
    enough = family == ALL or (wrong <= ALARMS and right >= RIGHT * n)
    known = "" if family == ALL else str(group["known"][0])
    return {
        "audit": audit, "family": family, "known": known, "n": n, "between": group.height - n, **said,
        "right": right, "wrong": wrong, "open": n - right - wrong,
        "wrong_at_most": error_bound(wrong, n), "passes": enough and error_bound(wrong, n) <= most,
    }  # fmt: skip


def cross_table(draws: pl.DataFrame) -> pl.DataFrame:
    """Truth × answer, a row per audit and truth: the table in one glance."""
    return pl.DataFrame([
        {"audit": audit, "truth": truth, "n": group.height}
        | {answer: group.filter(pl.col("answer") == answer).height for answer in ANSWERS}
        for (audit, truth), group in _groups(draws.sort("audit", "truth"), "audit", "truth")
    ])  # fmt: skip


def all_pass(table: pl.DataFrame) -> bool:
    """Whether every family does, and all together."""
    return bool(table["passes"].all())


def is_safe(table: pl.DataFrame) -> bool:
    """Whether no family has more wrong answers than one, and all together are surely wrong in at most one of twenty.

    A test that misses what is there costs an answer; one that is wrong costs more. So this decides on votes.
    """
    families, pooled = table.filter(pl.col("family") != ALL), table.filter(pl.col("family") == ALL)
    return bool((families["wrong"] <= ALARMS).all() and (pooled["wrong_at_most"] <= POOLED).all())


def summarise_counts(table: pl.DataFrame) -> Mapping[str, Any]:
    """The numbers of all families together, over all audits."""
    whole = table.filter(pl.col("family") == ALL)
    n, right, wrong = (int(whole[name].sum()) for name in ("n", "right", "wrong"))
    return {
        "draws": n,
        "right": right,
        "wrong": wrong,
        "open": n - right - wrong,
        "wrong_at_most": error_bound(wrong, n),
    }
