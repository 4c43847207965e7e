"""Necessity: what a model loses with other attention (Vashishth et al. 2019, figure 1 and table 1)."""

import altair as alt
import polars as pl

from exegete.experiments.necessity.section import CONDITIONS, WHEN
from exegete.report.labels import name_columns
from exegete.report.panels import WIDTH, complete, grid, in_order, series
from exegete.report.theme import nothing, themed

NUMBERS = ("change", "low", "high")


def necessity(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per condition, a column per task, a row per model; 0 is the model as it was."""
    table = changes(summary)
    if table.is_empty():
        return nothing("no condition was asked about")
    metric = " or ".join(in_order(summary["metric"]))
    width = (WIDTH - 160) // table["task"].n_unique() - 20
    drawn = _layers(table, metric).properties(width=width, height=alt.Step(15))
    faceted = grid(drawn, table, "task", "model", spacing=20)
    read = f"Change of {metric}, in points, when attention is replaced, with 95 % intervals. Line: no change."
    return themed(
        faceted.properties(title=read),
        f"Change of {metric} with uniform, random or permuted attention or without any, at inference only and in "
        "training too, by task and model.",
        table,
    )


def changes(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: task, model, condition, when (in words), change, low, high in points; every panel has a line."""
    kept = summary.filter(pl.col("change").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    table = name_columns(kept).select(
        "task",
        "model",
        pl.col("condition").replace(CONDITIONS),
        pl.col("when").replace_strict(WHEN),
        *(pl.col(name) * 100 for name in NUMBERS),
    )
    return complete(table, "task", "model", "condition", "when")


def _layers(table: pl.DataFrame, metric: str) -> alt.LayerChart:
    shown = [said for said in WHEN.values() if said in set(table["when"])]
    colour, shape = series("when", shown)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8)
    axis = alt.Axis(title=f"change of {metric} (points)", tickCount=4, format="~r")
    ends = [value for name in NUMBERS for value in table[name].drop_nulls()]
    room = 0.05 * max(1.0, max(0.0, *ends) - min(0.0, *ends))
    scale = alt.Scale(domain=[min(0.0, *ends) - room, max(0.0, *ends) + room], nice=False)
    base = alt.Chart().encode(
        y=alt.Y("condition:N", sort=in_order(table["condition"]), axis=plain, scale=alt.Scale(paddingInner=0.3)),
        yOffset=alt.YOffset("when:N", sort=shown),
    )
    zero = alt.Chart().transform_aggregate(lines="count()").transform_calculate(zero="0")
    layers = [
        zero.mark_rule(style="chance").encode(x=alt.X("zero:Q", scale=scale, axis=axis)),
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=52, opacity=1).encode(
            x=alt.X("change:Q", scale=scale, axis=axis), color=colour, shape=shape
        ),
    ]
    return alt.LayerChart(layer=layers)
