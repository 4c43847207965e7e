"""Sanity: how fast does a ranking go as layer after layer loses what it learnt? (Adebayo et al. 2018, figure 2)

A method that looks at the whole model falls to 0 with the first layers. A line that stays up is a method that doesn't
look there.
"""

import altair as alt
import polars as pl

from exegete.report.labels import importance_labels
from exegete.report.panels import WIDTH, in_lines, in_order, series, with_panel
from exegete.report.theme import inline, nothing, themed

PARTS = {
    "decoder": "decoder",
    "scorer": "+ attention",
    "sentence_encoder": "+ sentences",
    "word_scorer": "+ word attention",
    "question_encoder": "+ question",
    "encoder": "+ encoder",
    "selector": "+ selector",
    "question_embedding": "+ its words",
}
STEPS = {"trained": "trained", **PARTS, "embedding": "+ embeddings"}
COLUMNS = 5


def randomisation(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """A small panel per method, a line per model: mean τ-b with the trained model's ranking, down the cascade."""
    table = cascade(summary)
    if table.is_empty():
        return nothing("no method has a defined τ before and after randomisation")
    methods, panels = in_order(table["method"]), in_order(table["panel"])
    width = (WIDTH - 60) // min(COLUMNS, len(methods)) - 14
    header = alt.Header(title=None, labelPadding=6, labelFontSize=11, labelExpr=in_lines(methods, width // 6))
    facet = alt.Facet("method:N", sort=methods, header=header)
    drawn = _panel(table, panels).properties(width=width, height=96)
    faceted = drawn.facet(facet, columns=COLUMNS, data=inline(table), spacing={"row": 18, "column": 14})
    read = "Mean τ-b with the trained model's ranking, with 95 % intervals. Layers are drawn anew from left to right."
    return themed(
        faceted.properties(title=read),
        "What is left of every method's ranking of words as the layers of a model are randomised one after the other, "
        "one panel per method and one line per model.",
        table.drop("place"),
    )


def cascade(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel (the model), method, step, place, mean, low, high; before the first step all have 1."""
    kept = summary.filter(pl.col("test") == "cascade", pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    order = {part: place for place, part in enumerate(p for p in STEPS if p == "trained" or p in kept["part"])}
    named = with_panel(kept).with_columns(
        method=pl.col("method").replace_strict(importance_labels(kept["method"])),
        place=pl.col("part").replace_strict(order, return_dtype=pl.Int64),
        step=pl.col("part").replace_strict(STEPS),
    )
    shown = named.select("panel", "method", "step", "place", "mean", "low", "high")
    first = shown.unique(["panel", "method"], maintain_order=True).with_columns(
        step=pl.lit("trained"), place=pl.lit(0, pl.Int64), mean=pl.lit(1.0), low=pl.lit(1.0), high=pl.lit(1.0)
    )
    return pl.concat([shown, first])


def _panel(table: pl.DataFrame, panels: list[str]) -> alt.LayerChart:
    steps = in_order(table.sort("place")["step"])
    lowest = min(-0.25, *table["low"].drop_nulls(), *table["mean"])
    ticks = alt.Axis(title=None, labelAngle=-40, labelFontSize=9, labelPadding=3, grid=False, domain=False, ticks=False)
    x = alt.X("step:N", sort=steps, axis=ticks, scale=alt.Scale(padding=0.3))
    axis = alt.Axis(title=None, values=[-1, -0.5, 0, 0.5, 1], format="~g", labelOverlap=False)
    scale = alt.Scale(domain=[lowest, 1.05], nice=False)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=axis) for field in ("mean", "low"))
    legend = alt.Undefined if len(panels) > 1 else None
    colour, shape = series("panel", panels, legend)
    base = alt.Chart().encode(x=x)
    zero = alt.Chart().transform_filter(alt.datum.place == 0).transform_calculate(zero="0").mark_rule(style="chance")
    layers = [
        zero.encode(y=alt.Y("zero:Q", scale=scale, axis=axis)),
        base.mark_area(opacity=0.18).encode(y=low, y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(y=y, color=colour),
        base.mark_point(filled=True, size=24, opacity=1).encode(y=y, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)
