"""Readings: Γ, Γ of what is read and M of every reading, with their margins."""

import altair as alt
import polars as pl

from exegete.experiments.common.margins import margin
from exegete.experiments.mediation.experiment import TEST
from exegete.experiments.mediation.statistics import specification_name
from exegete.experiments.readings.candidates import SAID
from exegete.experiments.readings.tests import MARGINS
from exegete.report.panels import WIDTH, columns_of, in_order, series, with_panel
from exegete.report.theme import NEUTRAL, figure, inline

MEASURES = {"ranks": "Γ", "carried": "Γ of what is read", "reads": "M"}


def reading_levels(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, reading, specification, measure, mean, low, high, threshold."""
    asked = pl.col("reads").is_not_null() | (pl.col("kind") == "baseline")
    kept = with_panel(summary.filter(pl.col("on") == TEST, asked))
    names = [specification_name(*key) for key in kept.select("removal", "company", "scale").iter_rows()]
    one = pl.col("kind").is_in(["layer", "head"])
    where = pl.when(one).then(pl.format(" ({})", "site")).otherwise(pl.lit(""))
    said = pl.when(pl.col("kind") == "baseline").then("reading").otherwise(pl.col("kind").replace(SAID) + where)
    kept = kept.with_columns(name=said, specification=pl.Series(names, dtype=pl.String))
    parts = [
        kept.select(
            "panel", "name", "specification", measure=pl.lit(said), mean=pl.col(name), low=pl.col(f"{name}_low"),
            high=pl.col(f"{name}_high"), threshold=pl.lit(margin(MARGINS[name])),
        )
        for name, said in MEASURES.items()
    ]  # fmt: skip
    return pl.concat(parts).filter(pl.col("mean").is_not_null())


@figure(reading_levels, "no text in which a word matters")
def readings(table: pl.DataFrame) -> alt.FacetChart:
    """How well every reading of attention orders words by what they do, with and without heads that nobody reads, and
    how much of what words do goes through the edges that it looks at; baselines below.
    """
    shown = in_order(table["measure"])
    drawn = _layers(table).properties(width=(WIDTH - 240) // len(shown) - 20, height=alt.Step(9))
    faceted = drawn.facet(column=columns_of("measure", shown), data=inline(table), spacing=20)
    read = "Means over texts with 95 % intervals, by the way a word is removed."
    return faceted.properties(title=[read, "A reading may be trusted right of all three dashed rules."])


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    rows, order = in_order(table["name"]), in_order(table["specification"])
    colour, shape = series("specification", order)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8, labelLimit=230)
    ends = [value for name in ("mean", "low", "high") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), 1], nice=False)
    x = alt.X("low:Q", scale=scale, axis=alt.Axis(title="mean", values=[-1, -0.5, 0, 0.5, 1], format="~g"))
    base = alt.Chart().encode(
        y=alt.Y("name:N", sort=rows, axis=plain, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("specification:N", sort=order),
    )
    return alt.LayerChart(
        layer=[
            alt.Chart().mark_rule(color=NEUTRAL, strokeDash=[4, 3]).encode(x=alt.X("threshold:Q", scale=scale)),
            base.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q", color=colour),
            base.mark_point(size=24, filled=True, opacity=1).encode(
                x=alt.X("mean:Q", scale=scale), color=colour, shape=shape
            ),
        ]
    )
