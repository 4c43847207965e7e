"""Margins: what a test must reach, as charts and captions of a run show it.

They are those of the criteria that the run is judged by (`criteria.json` in its folder, written before anything is
drawn), or else those that tests declare. No chart or caption has a number of its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from exegete.base.files import read_json
from exegete.experiments.tests import all_tests

CRITERIA = "criteria.json"
Margins = Mapping[str, float]  # by test
Lower = Mapping[str, float | None]  # by test: what is partly so begins there
_IN_USE: ContextVar[Margins | None] = ContextVar("margins", default=None)
_LOWER: ContextVar[Lower | None] = ContextVar("lower", default=None)


def margins_of(run: Path) -> dict[str, float]:
    """The margins of a run; a test that its criteria don't name has the declared one."""
    kept = _criteria(run)
    return {name: kept.get(name, {}).get("margin", ours) for name, ours in declared_margins().items()}


def lower_of(run: Path) -> dict[str, float | None]:
    """By test the lower edge of a run, where what is *partly* so begins; a run of before has the declared one."""
    kept = _criteria(run)
    return {name: kept.get(name, {}).get("partly", test.partly) for name, test in all_tests().items()}


def _criteria(run: Path) -> dict[str, Any]:
    return read_json(run / CRITERIA, "criteria") if (run / CRITERIA).is_file() else {}


def declared_margins() -> dict[str, float]:
    """What tests declare."""
    return {name: test.margin for name, test in all_tests().items()}


@contextmanager
def show_margins(margins: Margins, lower: Lower | None = None) -> Iterator[None]:
    """What is drawn inside shows these margins, and these lower edges, or else the declared ones."""
    before, below = _IN_USE.set(margins), _LOWER.set(lower)
    try:
        yield
    finally:
        _IN_USE.reset(before)
        _LOWER.reset(below)


def margin(test: str) -> float:
    """The margin of a test, for a chart that is being drawn: of its run, or as declared where it is of none."""
    margins = _IN_USE.get()
    return all_tests()[test].margin if margins is None else margins[test]


def grade_edges(test: str) -> tuple[float, ...]:
    """The edges between grades, from the highest down: the margin, then the lower edge of a test that has one."""
    lower = _LOWER.get()
    partly = all_tests()[test].partly if lower is None else lower[test]
    return (margin(test),) if partly is None else (margin(test), partly)
