"""Side by side: several models (or projections) under the same tests, as a table of verdicts and a figure per test."""

import json
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import altair as alt
import polars as pl

from exegete.answers.pages.verdicts import TaskAndModel, name_of_test, task_and_model, title_of, verdict_places
from exegete.report.columns import judgement, text
from exegete.report.section import Figure, Section, Table, Verdict
from exegete.report.theme import NEUTRAL, PALETTE, inline, nothing, themed

MEANING = (
    "A line per model, a column per test: ✓ holds, ✗ fails, ± depends on how words are removed, ? inconclusive, ○ not "
    "testable, and the statistic. Read a "
    "column from top to bottom; tests have different scales, so a line has no sum. Below, every test has a figure: "
    "dots with intervals, coloured and shaped by verdict; the tall mark is the margin, the short one is chance."
)


def models_section(tests: Sequence[Verdict], tasks: Sequence[str], models: Sequence[str]) -> Section | None:
    """The comparison, in the order of the study; None of a single model on a single task."""
    labels = verdict_places(tests)
    if len(labels) < 2:
        return None
    order = sorted(labels, key=lambda place: _place(place, tasks, models))
    by_name: dict[str, dict[TaskAndModel, Verdict]] = {}
    for test in tests:
        by_name.setdefault(name_of_test(test, tests), {})[task_and_model(test)] = test
    words = {name_of_test(test, tests): title_of(test, tests) for test in tests}
    figures = [Figure(words[name], lines_by_model(_lines(found, order, labels), words[name]))
               for name, found in by_name.items() if _drawn(found)]  # fmt: skip
    table = _table(by_name, order, labels, words)
    return Section("The models side by side", "models", [MEANING], [table], figures)


def _place(place: TaskAndModel, tasks: Sequence[str], models: Sequence[str]) -> tuple[int, int]:
    """Where a study names it; what it doesn't name comes last."""
    task, model = place
    return (
        tasks.index(task) if task in tasks else len(tasks),
        models.index(model) if model in models else len(models),
    )


def _drawn(found: dict[TaskAndModel, Verdict]) -> bool:
    """Whether there is something to compare."""
    return sum(test.statistic is not None for test in found.values()) > 1


def _table(
    by_name: dict[str, dict[TaskAndModel, Verdict]],
    order: Sequence[TaskAndModel],
    labels: dict[TaskAndModel, str],
    words: dict[str, str],
) -> Table:
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
    columns = [text("model"), *(judgement(f"{n}_verdict", f"{n}_statistic", words[n]) for n in by_name)]
    return Table("Verdicts by model", pl.DataFrame(rows, schema=schema), "In the order of the study.", columns)


def _lines(
    found: dict[TaskAndModel, Verdict], order: Sequence[TaskAndModel], labels: dict[TaskAndModel, str]
) -> pl.DataFrame:
    """What a figure draws: a line for every model that was asked."""
    rows = [
        {"model": labels[place], "verdict": test.verdict, "outcome": test.outcome, "statistic": test.statistic,
         "low": test.interval[0], "high": test.interval[1], "threshold": test.threshold, "chance": test.chance,
         "n": test.n}
        for place in order if (test := found.get(place)) is not None
    ]  # fmt: skip
    numbers = dict.fromkeys(("statistic", "low", "high", "threshold", "chance"), pl.Float64)
    return pl.DataFrame(
        rows, schema={"model": pl.String, "verdict": pl.String, "outcome": pl.String, **numbers, "n": pl.Int64}
    )


WIDTH, LETTERS, MOST = 240, 26, 3  # pixels of the scale; letters of a line of a model's label, and its lines
STEP, LINE = 30, 14  # pixels of a model, and what every further line of its label adds
COLOURS = {
    "holds": PALETTE[2],
    "fails": PALETTE[1],
    "hangs on": PALETTE[4],
    "cannot tell": PALETTE[3],
    "not testable": NEUTRAL,
}
SHAPES = {
    "holds": "circle",
    "fails": "square",
    "hangs on": "triangle-up",
    "cannot tell": "diamond",
    "not testable": "cross",
}


def lines_by_model(table: pl.DataFrame, test: str) -> alt.Chart | alt.LayerChart:
    """A line per model, in the order of the table: model, verdict, statistic, low, high, threshold, chance."""
    if table["statistic"].is_null().all():
        return nothing(f"{test} has no statistic for any model")
    order = table["model"].to_list()
    said, step = _labels(order)
    labels = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8, labelExpr=said)
    base = alt.Chart(inline(table)).encode(y=alt.Y("model:N", sort=order, axis=labels))
    axis = alt.Axis(title=f"{test}: statistic with interval", grid=False, tickCount=3, format="~g", labelOverlap=True)
    x = alt.X("statistic:Q", axis=axis, scale=alt.Scale(zero=False, nice=True))
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=None)
    shape = alt.Shape("verdict:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None)
    layers = [
        base.mark_tick(style="chance", height=STEP - 10, thickness=1.2, opacity=0.6).encode(x="chance:Q"),
        base.mark_tick(style="chance", height=STEP - 2, thickness=1.6).encode(x="threshold:Q"),
        base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, color=colour, shape=shape),
        base.mark_text(style="mark", align="left", fontSize=11).encode(x=alt.value(WIDTH + 10), text="outcome:N"),
    ]  # fmt: skip
    whole = alt.LayerChart(layer=layers).properties(width=WIDTH, height=alt.Step(step))
    return themed(whole, f"{test}: a dot with its interval for every model, with the margin and chance.", table)


def _labels(models: Sequence[str]) -> tuple[str, int]:
    """A vega expression that breaks the labels into lines, and the room that the longest needs."""
    lines = {model: wrap(model, LETTERS, max_lines=MOST, placeholder="…") for model in models}
    most = max(map(len, lines.values()), default=1)
    return json.dumps(lines, ensure_ascii=False) + "[datum.label]", STEP + LINE * (most - 1)
