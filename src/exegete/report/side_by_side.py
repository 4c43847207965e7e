"""Side by side: several models (or projections) under the same tests, as a table of verdicts and a figure per test."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from exegete.page.columns import judged, text
from exegete.page.section import Figure, Section, Table, Verdict
from exegete.report.comparison_figure import across
from exegete.report.verdicts import Place, name_of, place_of, places

MEANING = (
    "A line per model, a column per test: ✓ holds, ✗ fails, ? cannot tell, ○ not testable, and the statistic. Read a "
    "column from top to bottom; tests have different scales, so a line has no sum. Below, every test has a figure: "
    "dots with intervals, coloured and shaped by verdict; the tall mark is the margin, the short one is chance."
)


def side_by_side(tests: Sequence[Verdict], tasks: Sequence[str], models: Sequence[str]) -> Section | None:
    """The comparison, in the order of the study; None of a single model on a single task."""
    labels = places(tests)
    if len(labels) < 2:
        return None
    order = sorted(labels, key=lambda place: _place(place, tasks, models))
    by_name: dict[str, dict[Place, Verdict]] = {}
    for test in tests:
        by_name.setdefault(name_of(test, tests), {})[place_of(test)] = test
    figures = [Figure(_words(name), across(_lines(found, order, labels), _words(name)))
               for name, found in by_name.items() if _drawn(found)]  # fmt: skip
    table = _table(by_name, order, labels)
    return Section("The models side by side", "models", [MEANING], [table], figures)


def _place(place: Place, tasks: Sequence[str], models: Sequence[str]) -> tuple[int, int]:
    """Where a study names it; what it doesn't name comes last."""
    task, model = place
    return (
        tasks.index(task) if task in tasks else len(tasks),
        models.index(model) if model in models else len(models),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _drawn(found: dict[Place, Verdict]) -> bool:
    """Whether there is something to compare."""
    return sum(test.statistic is not None for test in found.values()) > 1


def _table(by_name: dict[str, dict[Place, Verdict]], order: Sequence[Place], labels: dict[Place, str]) -> Table:
    rows: list[dict[str, Any]] = []
    for place in order:
        row: dict[str, Any] = {"model": labels[place]}
        for name, found in by_name.items():
            test = found.get(place)
            row |= {f"{name}_verdict": test and test.verdict, f"{name}_statistic": test and test.statistic}
        rows.append(row)
    schema = {"model": pl.String} | {
        f"{name}_{part}": kind for name in by_name for part, kind in (("verdict", pl.String), ("statistic", pl.Float64))
    }
    columns = [text("model"), *(judged(f"{n}_verdict", f"{n}_statistic", _words(n)) for n in by_name)]
    return Table("Verdicts by model", pl.DataFrame(rows, schema=schema), "In the order of the study.", columns)


def _lines(found: dict[Place, Verdict], order: Sequence[Place], labels: dict[Place, str]) -> pl.DataFrame:
    """What a figure draws: a line for every model that was asked."""
    rows = [
        {"model": labels[place], "verdict": test.verdict, "statistic": test.statistic, "low": test.interval[0],
         "high": test.interval[1], "threshold": test.threshold, "chance": test.chance, "n": test.n}
        for place in order if (test := found.get(place)) is not None
    ]  # fmt: skip
    numbers = dict.fromkeys(("statistic", "low", "high", "threshold", "chance"), pl.Float64)
    return pl.DataFrame(rows, schema={"model": pl.String, "verdict": pl.String, **numbers, "n": pl.Int64})
