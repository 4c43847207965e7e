"""Theme: one look for every figure, on white paper and on a page that follows the reader's light or dark.

Data colours are fixed and legible on both grounds; ink (text, axes, grid) is not fixed but named, so that one drawing
(`exegete.report.drawing`) serves both.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import altair as alt
import polars as pl
from altair.typing import ChartType
from altair.utils.schemapi import debug_mode

from exegete.report.drawing import carried_table, drawing
from exegete.report.ink import INK as INK
from exegete.report.ink import SENTINELS as SENTINELS
from exegete.report.ink import config as config

# Vermilion and green are Okabe & Ito's (2008), blue is theirs a little lighter, violet and magenta were searched for.
# All have a contrast of 3:1 or more to white and to #111, and stay apart for protan, deutan and tritan readers (the
# tests compute both). Where they can, shapes and dashes say the same once more.
PALETTE = ("#0877BA", "#D55E00", "#009E73", "#9085F2", "#B0287A")
NEUTRAL = "#808080"  # what is not a finding: noise, "all others"
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")

_Drawn = TypeVar("_Drawn", alt.Chart, alt.FacetChart, alt.LayerChart)


def themed(chart: _Drawn, description: str, table: pl.DataFrame | None = None) -> _Drawn:
    """The chart in its look, wherever it is shown, with a sentence that describes it and the table that it draws."""
    drawn: _Drawn = chart.copy(deep=False)
    drawn.config = alt.Config(**config())
    drawn.description = description
    if table is not None:
        drawn.usermeta = {"numbers": table.write_json()}
    return drawn


def numbers(chart: ChartType) -> pl.DataFrame | None:
    """The table that a chart draws, where it carries one."""
    return carried_table(chart.to_dict(validate=False))


def to_svg(chart: ChartType) -> str:
    """A chart as a file of its own."""
    return drawing(chart).svg


class _Inline(alt.InlineData):
    """Data that charts share: altair would copy every cell with every part of a chart that it puts together."""

    def __deepcopy__(self, _: Any) -> "_Inline":
        return self


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """A small frame as a chart's own data: no row limit, and no transformer of the user's that changes the output."""
    with debug_mode(False):  # altair would check every cell against its schema, for seconds
        return _Inline(values=frame.to_dicts())


def nothing(why: str) -> alt.Chart:
    """A small chart that says why there is no other."""
    sentence = f"nothing to show: {why}"
    words = alt.Chart(inline(pl.DataFrame({"all": [0]}))).mark_text(style="sentence", align="left")
    drawn: alt.Chart = words.encode(x=alt.value(0), text=alt.value(sentence))
    drawn = drawn.properties(width=7 * len(sentence), height=40)
    return themed(drawn, sentence)


def figure(
    tabled: Callable[[pl.DataFrame], pl.DataFrame], why: str
) -> Callable[[Callable[[pl.DataFrame], _Drawn]], Callable[[pl.DataFrame], _Drawn | alt.Chart]]:
    """A function that draws a table as a figure of the rows, or the summary, that `tabled` makes the table of.

    Its docstring is the sentence that describes the figure. Where there is nothing to draw, the chart says why.
    """

    def of(draw: Callable[[pl.DataFrame], _Drawn]) -> Callable[[pl.DataFrame], _Drawn | alt.Chart]:
        description = " ".join((draw.__doc__ or "").split())

        @wraps(draw)
        def drawn(frame: pl.DataFrame) -> _Drawn | alt.Chart:
            table = tabled(frame)
            return nothing(why) if table.is_empty() else themed(draw(table), description, table)

        return drawn

    return of
