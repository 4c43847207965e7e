"""What a question finds at the readout and at other layers, one below the other, with intervals."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from exegete.experiments.common.depth import READOUT
from exegete.interventions.sites import EVERY
from exegete.report.panels import grid, in_order, series, with_panel
from exegete.report.theme import inline, themed

NUMBERS = ("mean", "low", "high")
ONE = ""  # the group of dots where there is one at each place
ALL = {"class": "all", "bin": "all"}  # texts of every class and largest weight


def dots_by_place(summary: pl.DataFrame, axis: str, of: Mapping[str, Any], group: str | None = None) -> dict[str, Any]:
    """Dots with intervals, by place (and group), of a summary's rows of one thing; none where one place was asked."""
    if "sites" not in summary.columns or summary["sites"].n_unique() < 2:
        return {}
    named = with_panel(summary.filter(**of)).with_columns(
        place=pl.col("sites"), group=pl.lit(ONE) if group is None else pl.col(group), column=pl.lit("")
    )
    table = named.select("panel", "column", "place", "group", *(pl.col(name).cast(pl.Float64) for name in NUMBERS))
    faceted = grid(_dots(table, axis).properties(width=420, height=alt.Step(26)), table, "column")
    told = f"By where weights are changed: {axis}. Means with 95 % intervals."
    return {"layers": themed(faceted.properties(title=told), f"{told} A line per layer, a panel per model.", table)}


def _dots(table: pl.DataFrame, title: str) -> alt.LayerChart:
    groups = in_order(table["group"])
    places = sorted(in_order(table["place"]), key=lambda place: (place == EVERY, place == READOUT))  # else as they are
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    y = alt.Y("place:N", sort=places, axis=plain)
    colour, shape = series("group", groups, alt.Undefined if len(groups) > 1 else None)
    apart = alt.YOffset("group:N", sort=groups)
    base = alt.Chart(inline(table)).encode(y=y, color=colour, yOffset=apart)
    x = alt.X("mean:Q", axis=alt.Axis(title=title, tickCount=5, format="~g"))
    marks = [
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, size=56, opacity=1).encode(x=x, shape=shape),
    ]
    return alt.LayerChart(layer=marks)
