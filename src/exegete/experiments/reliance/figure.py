"""Reliance: what uniform weights cost a model, against how good its best adversary is (Neely & Schouten 2020)."""

import altair as alt
import polars as pl

from exegete.report.labels import name_columns
from exegete.report.panels import WIDTH, columns_of, in_order
from exegete.report.theme import NEUTRAL, PALETTE, SHAPES, figure, inline

JSD, LOST = "JSD of the best adversary", "accuracy that it loses"
COLUMNS = {"jsd": JSD, "lost": LOST}


def reliance_points(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: what, task, model, seed, x, y, and the ends of both intervals."""
    kept = summary.filter(pl.col("jsd").is_not_null(), pl.col("drop").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    x = {"x": "drop", "x_low": "drop_low", "x_high": "drop_high"}
    parts = [
        name_columns(kept).select(
            "task", "model", "seed", "lam", what=pl.lit(label), **x, y=name, y_low=f"{name}_low", y_high=f"{name}_high"
        )
        for name, label in COLUMNS.items()
    ]
    return pl.concat(parts)


@figure(reliance_points, "no adversary predicts the same")
def reliance(table: pl.DataFrame) -> alt.FacetChart:
    """Accuracy lost with uniform attention against the divergence that the best adversary reaches and the accuracy that
    it loses, a point per trained model.
    """
    shown = in_order(table["what"])
    drawn = _layers(table).properties(width=(WIDTH - 120) // 2, height=240)
    faceted: alt.FacetChart = drawn.facet(column=columns_of("what", shown), data=inline(table), spacing=40)
    faceted = faceted.resolve_scale(y="independent")
    read = (
        "A point is a trained model; bars are 95 % intervals over texts. To the right: models that need attention more."
    )
    return faceted.properties(title=read)


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    models, tasks = in_order(table["model"]), in_order(table["task"])
    colours = alt.Scale(domain=models, range=[PALETTE[i % len(PALETTE)] for i in range(len(models))])
    forms = alt.Scale(domain=tasks, range=[SHAPES[i % len(SHAPES)] for i in range(len(tasks))])
    circle = alt.Legend(symbolType="circle", symbolStrokeWidth=0)
    colour = alt.Color("model:N", scale=colours, legend=circle)
    grey = alt.Legend(symbolFillColor=NEUTRAL, symbolStrokeColor=NEUTRAL) if len(tasks) > 1 else None
    shape = alt.Shape("task:N", scale=forms, legend=grey)
    axis = alt.Axis(title="accuracy lost with uniform attention", tickCount=5, format="~g", grid=False)
    x = alt.X("x:Q", axis=axis, scale=alt.Scale(zero=True))
    y = alt.Y("y:Q", axis=alt.Axis(title=None, tickCount=5, format="~g"), scale=alt.Scale(zero=True))
    base = alt.Chart()
    zero = base.transform_aggregate(groupby=["what"], lines="count()").transform_calculate(zero="0")
    layers = [
        zero.mark_rule(style="chance", strokeDash=[3, 3]).encode(x=alt.X("zero:Q", axis=axis)),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(
            x=alt.X("x_low:Q", axis=axis), x2="x_high:Q", y=y, color=colour
        ),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(x=x, y=alt.Y("y_low:Q"), y2="y_high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)
