"""Gating: a model with attention, with gates, and with another seed (Vashishth et al. 2019, proposition 4.1)."""

import altair as alt
import polars as pl

from exegete.report.panels import WIDTH, columns_of, in_order, series, with_panel
from exegete.report.theme import figure, inline

MEASURES = {"accuracy": "accuracy", "same": "same prediction", "tau": "τ-b with attention", "gate": "mean gate"}
WHO = ("attention", "gates", "another seed")


def gating_levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel (task and model), measure and who in words, mean, low, high."""
    kept = summary.filter(pl.col("measure").is_in(list(MEASURES)), pl.col("who").is_in(WHO))
    kept = kept.filter(pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    order = {name: place for place, name in enumerate(MEASURES)}
    named = with_panel(kept).sort(pl.col("measure").replace_strict(order), maintain_order=True)
    return named.select("panel", pl.col("measure").replace_strict(MEASURES), "who", "mean", "low", "high")


@figure(gating_levels, "no model has attention that could be gates")
def gating(table: pl.DataFrame) -> alt.FacetChart:
    """Accuracy, share of equal predictions, rank correlation of weights and mean gate, of the same model with gates in
    place of attention and with another seed.
    """
    shown = in_order(table["measure"])
    width = (WIDTH - 200) // len(shown) - 20
    drawn = _layers(table).properties(width=width, height=alt.Step(13))
    faceted = drawn.facet(column=columns_of("measure", shown), data=inline(table), spacing=20)
    read = "Means with 95 % intervals. Another seed: what retraining alone changes. Mean gate 1: gates choose nothing."
    return faceted.properties(title=read)


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    panels = in_order(table["panel"])
    colour, shape = series("who", WHO)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8, labelLimit=190)
    axis = alt.Axis(title="mean", values=[-1, 0, 0.5, 1], format="~g")
    ends = [value for name in ("mean", "low") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), 1], nice=False)
    base = alt.Chart().encode(
        y=alt.Y("panel:N", sort=panels, axis=plain, scale=alt.Scale(paddingInner=0.35)),
        yOffset=alt.YOffset("who:N", sort=list(WHO)),
    )
    return alt.LayerChart(
        layer=[
            base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", color=colour),
            base.mark_point(filled=True, size=46, opacity=1).encode(
                x=alt.X("mean:Q", scale=scale, axis=axis), color=colour, shape=shape
            ),
        ]
    )
