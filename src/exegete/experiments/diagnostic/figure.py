"""Diagnostic: how well a model of single words does under weights from elsewhere (Wiegreffe & Pinter 2019, test 3)."""

import altair as alt
import polars as pl

from exegete.experiments.diagnostic.section import LABELS, MEASURES
from exegete.report.panels import WIDTH, grid, in_order, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, figure

SOURCES, WORDS = "where weights come from", "a model of single words with these weights"


def diagnostic_levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, measure, weights (in words), kind, mean, low, high, reference."""
    kept = summary.filter(pl.col("against") == "", pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    source = pl.col("weights").is_in(["base", "adversary"])
    named = with_panel(kept).with_columns(
        kind=pl.when(source).then(pl.lit(SOURCES)).otherwise(pl.lit(WORDS)),
        place=pl.col("weights").replace_strict({name: i for i, name in enumerate(LABELS)}),
        measure=pl.col("measure").replace_strict(MEASURES),
        weights=pl.col("weights").replace_strict(LABELS),
    )
    return named.sort("place", maintain_order=True).select(
        "panel", "measure", "weights", "kind", "mean", "low", "high", "reference"
    )


@figure(diagnostic_levels, "no text was predicted")
def diagnostic(table: pl.DataFrame) -> alt.FacetChart:
    """Accuracy and F1 of a model of single words under its own, uniform, imposed and adversarial weights."""
    width = (WIDTH - 220) // table["measure"].n_unique() - 24
    drawn = _layers(table).properties(width=width, height=alt.Step(18))
    faceted = grid(drawn, table, "measure")
    read = "Means over test texts with 95 % intervals. Tick: always the most frequent class."
    return faceted.properties(title=read)


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    ends = [*table["low"].drop_nulls(), *table["high"].drop_nulls(), *table["mean"], *table["reference"].drop_nulls()]
    span = [max(0.0, min(ends) - 0.02), min(1.0, max(ends) + 0.02)]
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    axis = alt.Axis(title=None, tickCount=4, format="~g", grid=False)
    x = alt.X("mean:Q", scale=alt.Scale(domain=span, nice=False), axis=axis)
    kinds = alt.Scale(domain=[SOURCES, WORDS], range=[NEUTRAL, PALETTE[0]])
    colour = alt.Color("kind:N", scale=kinds, legend=alt.Legend(symbolType="circle", symbolFillColor=None))
    base = alt.Chart().encode(y=alt.Y("weights:N", sort=in_order(table["weights"]), axis=plain))
    layers = [
        base.mark_tick(style="chance", height=14, thickness=1.2, opacity=0.7).encode(x=alt.X("reference:Q")),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=52, opacity=1).encode(x=x, color=colour),
    ]
    return alt.LayerChart(layer=layers)
