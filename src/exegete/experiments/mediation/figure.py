"""Mediation: M and Γ of attention by specification, with their thresholds."""

import altair as alt
import polars as pl

from exegete.experiments.mediation.section import of_attention
from exegete.page.panels import WIDTH, columns_of, in_order, series, with_panel
from exegete.page.theme import NEUTRAL, figure, inline

MEASURES = {"reads": "M: through its weight", "ranks": "Γ of words", "locates": "Γ of states"}
THRESHOLDS = {"reads": 0.25, "ranks": 0.7}


def levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, specification, measure, mean, low, high, threshold."""
    kept = with_panel(of_attention(summary)).with_columns(
        way=pl.format("{} {}", "removal", pl.col("company").replace("company", "in company"))
    )
    parts = [
        kept.select(
            "panel", "specification", "way", "scale", measure=pl.lit(said), mean=pl.col(name),
            low=pl.col(f"{name}_low"), high=pl.col(f"{name}_high"),
            threshold=pl.lit(THRESHOLDS.get(name), dtype=pl.Float64),
        )
        for name, said in MEASURES.items()
    ]  # fmt: skip
    return pl.concat(parts).filter(pl.col("mean").is_not_null())


@figure(levels, "no text in which a word matters")
def mediation(table: pl.DataFrame) -> alt.FacetChart:
    """How much of what words do goes through their weights, and how well weights order words and states, by model and
    by the way a word is removed.
    """
    shown = in_order(table["measure"])
    drawn = _layers(table).properties(width=(WIDTH - 240) // len(shown) - 20, height=alt.Step(7))
    faceted = drawn.facet(column=columns_of("measure", shown), data=inline(table), spacing=20)
    read = "Means over texts with 95 % intervals, of log-odds (filled) and probability."
    return faceted.properties(title=f"{read} Attention may be read right of both dashed rules.")


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    panels, order = in_order(table["panel"]), in_order(table["specification"])
    colour, shape = series("way", in_order(table["way"]))
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8, labelLimit=230)
    ends = [value for name in ("mean", "low") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), 1], nice=False)
    x = alt.X("low:Q", scale=scale, axis=alt.Axis(title="mean", values=[-1, -0.5, 0, 0.5, 1], format="~g"))
    base = alt.Chart().encode(
        y=alt.Y("panel:N", sort=panels, axis=plain, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("specification:N", sort=order),
    )
    filled = alt.condition("datum.scale == 'log-odds'", colour, alt.value("transparent"))
    return alt.LayerChart(
        layer=[
            alt.Chart().mark_rule(color=NEUTRAL, strokeDash=[4, 3]).encode(x=alt.X("threshold:Q", scale=scale)),
            base.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q", color=colour),
            base.mark_point(size=30, opacity=1).encode(
                x=alt.X("mean:Q", scale=scale), color=colour, fill=filled, shape=shape
            ),
        ]
    )
