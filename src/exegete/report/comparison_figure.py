"""Comparison: one test on several models, a dot with its interval for each, against the margin and chance."""

import json
from collections.abc import Sequence
from textwrap import wrap

import altair as alt
import polars as pl

from exegete.page.theme import NEUTRAL, PALETTE, inline, nothing, themed

WIDTH, LETTERS, MOST = 240, 26, 3  # pixels of the scale; letters of a line of a model's label, and its lines
STEP, LINE = 30, 14  # pixels of a model, and what every further line of its label adds
COLOURS = {"holds": PALETTE[2], "fails": PALETTE[1], "cannot tell": PALETTE[3], "not testable": NEUTRAL}
SHAPES = {"holds": "circle", "fails": "square", "cannot tell": "diamond", "not testable": "cross"}


def across(table: pl.DataFrame, test: str) -> alt.Chart | alt.LayerChart:
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
        base.mark_text(style="mark", align="left", fontSize=11).encode(x=alt.value(WIDTH + 10), text="verdict:N"),
    ]  # fmt: skip
    whole = alt.LayerChart(layer=layers).properties(width=WIDTH, height=alt.Step(step))
    return themed(whole, f"{test}: a dot with its interval for every model, with the margin and chance.", table)


def _labels(models: Sequence[str]) -> tuple[str, int]:
    """A vega expression that breaks the labels into lines, and the room that the longest needs."""
    lines = {model: wrap(model, LETTERS, max_lines=MOST, placeholder="…") for model in models}
    most = max(map(len, lines.values()), default=1)
    return json.dumps(lines, ensure_ascii=False) + "[datum.label]", STEP + LINE * (most - 1)
