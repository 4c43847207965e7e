"""Dots: methods one below the other, means with intervals, a column per question, each with its chance level.

A filled dot ranks words by their signed scores (for the class first), a ring by the size of the scores.
"""

from collections.abc import Sequence

import altair as alt
import polars as pl

from exegete.report.families import COLOURS, FAMILIES, family
from exegete.report.labels import importance_labels
from exegete.report.panels import WIDTH, complete, grid, in_order, with_panel

NUMBERS = ("mean", "low", "high", "chance")


def dots_table(kept: pl.DataFrame, column: pl.Expr, order: Sequence[str], note: pl.Expr | None = None) -> pl.DataFrame:
    """What is drawn: panel, column, note, method, family, ranking, numbers; the methods that are best on average first.

    A note is said above its panel, whose dots are then pale.
    """
    if kept.is_empty():
        return pl.DataFrame()
    first = kept.filter(pl.col("ranking") == kept["ranking"][0])
    means = first.group_by("method", maintain_order=True).agg(pl.col("mean").mean())
    best = means.sort("mean", descending=True, maintain_order=True)["method"].to_list()
    named = with_panel(kept.with_columns(column=column)).with_columns(
        label=pl.col("method").replace_strict(importance_labels(kept["method"])),
        family=pl.Series([family(method) for method in kept["method"]], dtype=pl.String),
        place=pl.col("method").replace_strict({method: i for i, method in enumerate(best)}),
        across=pl.col("column").replace_strict({name: i for i, name in enumerate(order)}),
        note=pl.lit("") if note is None else note,
    )
    ordered = named.sort("across", "place", maintain_order=True)
    table = ordered.select("panel", "column", "note", "family", "ranking", *NUMBERS, method="label")
    whole = complete(table, "panel", "column", "family", "ranking", "method")
    return whole.with_columns(pl.col("note").fill_null(""))


def dots(table: pl.DataFrame, axis: str) -> alt.FacetChart:
    """A line per method, a column per question, a row per model."""
    width = (WIDTH - 200) // table["column"].n_unique() - 24
    drawn = _layers(table, axis, width).properties(width=width, height=alt.Step(18))
    return grid(drawn, table, "column")


def _layers(table: pl.DataFrame, title: str, width: int) -> alt.LayerChart:
    shown = [name for name in FAMILIES if name in set(table["family"])]
    legend = alt.Legend(symbolType="circle", symbolFillColor=None)
    scale = alt.Scale(domain=shown, range=[COLOURS[name] for name in shown])
    colour = alt.Color("family:N", scale=scale, legend=legend)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    axis = alt.Axis(title=title, values=[0, 0.5, 1], format="~g", grid=False)
    x = alt.X("mean:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    seen = alt.condition("datum.note == ''", alt.value(1), alt.value(0.35))
    base = alt.Chart().encode(y=alt.Y("method:N", sort=in_order(table["method"]), axis=plain))
    filled = base.transform_filter(f"datum.ranking == '{table['ranking'][0]}'")
    ring = base.transform_filter(f"datum.ranking != '{table['ranking'][0]}'")
    said = alt.Chart().transform_filter("datum.note != ''").transform_aggregate(groupby=["note"], lines="count()")
    layers = [
        # Chance differs by method where ties or undefined texts do: a tick on each line says it exactly.
        base.mark_tick(style="chance", height=14, thickness=1.2, opacity=0.7).encode(x=alt.X("chance:Q")),
        filled.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour, opacity=seen),
        ring.mark_point(size=110, strokeWidth=1.4, filled=False).encode(x=x, color=colour, opacity=seen),
        filled.mark_point(filled=True, size=52).encode(x=x, color=colour, opacity=seen),
        said.mark_text(style="note", align="center", baseline="bottom", fontStyle="italic").encode(
            x=alt.value(width / 2), y=alt.value(-1), text="note:N"
        ),
    ]
    return alt.LayerChart(layer=layers)
