"""Switches: one panel per disagreement, a line from the setting of one paper to that of the other."""

import json
from textwrap import wrap
from typing import cast

import altair as alt
import polars as pl

from exegete.report.panels import WIDTH, in_order
from exegete.report.theme import DASHES, PALETTE, SHAPES, inline, nothing, themed

PANELS = 2  # side by side
HEIGHT = 170
APART = 14  # between series at one setting, in pixels
LINES = 3  # that the words above a panel may take


def switches(table: pl.DataFrame) -> alt.Chart | alt.ConcatChart:
    """Means with intervals at every setting, joined by a line for each series; short lines are the references."""
    if table.is_empty():
        return nothing("no switch was asked for")
    width = WIDTH // PANELS - 75
    panels = [_panel(part, width) for part in table.partition_by("switch", maintain_order=True)]
    read = (
        "Dots: values with 95 % intervals, joined from setting to setting. Short lines: what a value is read against."
    )
    whole = alt.concat(*panels, columns=PANELS, spacing={"row": 36, "column": 34})
    whole = whole.resolve_scale(color="independent", shape="independent", strokeDash="independent", y="independent")
    drawn: object = themed(
        cast(alt.LayerChart, whole.properties(title=alt.TitleParams(read, offset=14))),
        "For each disagreement of the debate: the values under the settings of either side, with intervals.",
        table,
    )
    return cast(alt.ConcatChart, drawn)


def _panel(part: pl.DataFrame, width: int) -> alt.VConcatChart:
    """One disagreement: what is asked and what turns it, and the lines."""
    both = alt.vconcat(_heading(part, width), _lines(part, width), spacing=4)
    return cast(alt.VConcatChart, both.resolve_legend(color="independent", shape="independent"))


def _lines(part: pl.DataFrame, width: int) -> alt.LayerChart:
    labels, series = in_order(part["setting"]), in_order(part["series"])
    y, x = _value(part), _settings(part, labels, width)
    offsets = alt.Scale(type="point", padding=0, range=_offsets(len(series), width / len(labels)))
    offset = alt.XOffset("series:N", sort=series, scale=offsets)
    colour = alt.Color("series:N", scale=alt.Scale(domain=series, range=list(PALETTE)))
    shape = alt.Shape("series:N", scale=alt.Scale(domain=series, range=list(SHAPES)))
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=series, range=[list(d) for d in DASHES]), legend=None)
    base = alt.Chart(inline(part)).encode(x=x, xOffset=offset)
    tick = base.mark_tick(style="mark", orient="horizontal", thickness=1.6, width=APART, opacity=1)
    layers = [
        base.mark_line(strokeWidth=1.4, opacity=0.75).encode(y=y, color=colour, strokeDash=dash),
        base.mark_rule(strokeWidth=2.2).encode(y="low:Q", y2="high:Q", color=colour),
        base.mark_point(filled=True, size=52, opacity=1).encode(y=y, color=colour, shape=shape),
        tick.encode(y="reference:Q"),
        *_notes(part, series, x),
    ]
    drawn: alt.LayerChart = alt.LayerChart(layer=layers).properties(width=width, height=HEIGHT)
    return drawn


def _offsets(count: int, step: float) -> list[float]:
    """Where the first and the last series stand within a setting: around its middle."""
    half = APART * (count - 1) / 2
    return [step / 2 - half, step / 2 + half]


def _settings(part: pl.DataFrame, labels: list[str], width: int) -> alt.X:
    """The settings from left to right, each label in lines, the one who set it so below it."""
    by = dict(part.select("setting", "by").iter_rows())
    room = max(8, int(width / len(labels) / 5.4))
    lines = {label: [*wrap(label, room), *wrap(f"({by[label]})", room)] for label in labels}
    said = json.dumps(lines, ensure_ascii=False) + "[datum.label]"
    axis = alt.Axis(title=None, labelAngle=0, labelFontSize=10, domain=False, ticks=False, grid=False, labelExpr=said)
    return alt.X("setting:N", sort=labels, axis=axis, scale=alt.Scale(paddingInner=0, paddingOuter=0))


def _value(part: pl.DataFrame) -> alt.Y:
    seen = [v for name in ("value", "low", "high", "reference") for v in part[name].drop_nulls()]
    low, high = min(0.0, *seen), max(0.0, *seen)
    room = (0.15 if part["beside"].drop_nulls().len() else 0.06) * (high - low)
    ends = [low - room if low < 0 else 0, high + room]
    axis = alt.Axis(title=part["axis"][0], tickCount=5, format="~r")
    return alt.Y("value:Q", scale=alt.Scale(domain=ends, nice=False), axis=axis)


def _notes(part: pl.DataFrame, series: list[str], x: alt.X) -> list[alt.Chart]:
    """What must be known beside a value: of the first series, above each setting."""
    noted = part.filter(pl.col("beside").is_not_null(), pl.col("series") == series[0])
    if noted.is_empty():
        return []
    words = f"'{noted['beside_is'][0]} ' + format(datum.beside, '.2f')"
    text = alt.Chart(inline(noted)).transform_calculate(note=words).mark_text(style="note", baseline="top")
    return [text.encode(x=x, y=alt.value(0), text="note:N")]


def _heading(part: pl.DataFrame, width: int) -> alt.Chart:
    """The question; below it what turns the answer, and what the short lines are."""
    said = f"What turns it: {part['turns'][0]}. Short lines: {part['reference_is'][0]}."
    if part["beside"].drop_nulls().len():
        said += f" {part['beside_is'].drop_nulls()[0]}: of {part['series'][0]}."
    lines = pl.DataFrame({"said": wrap(said, int(width / 4.6))}).with_row_index("line")
    base = alt.Chart(inline(lines)).mark_text(style="note", align="left", baseline="top")
    y = alt.Y("line:O", axis=None, scale=alt.Scale(domain=list(range(LINES)), paddingInner=0, paddingOuter=0))
    title = alt.TitleParams(part["title"][0], fontSize=12, fontWeight="bold", anchor="start", offset=4)
    words: alt.Chart = base.encode(x=alt.value(0), y=y, text="said:N")
    return words.properties(width=width, height=13 * LINES, title=title)
