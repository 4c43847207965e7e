"""Histograms of τ: do importances agree, and alike for every predicted class? (Jain & Wallace 2019, figure 2)"""

import altair as alt
import polars as pl

from exegete.page.labels import measure_label
from exegete.page.panels import TICKS, WIDTH, columns_of, in_order, rows_of, with_pair, with_panel, without_noise
from exegete.page.theme import NEUTRAL, PALETTE, inline, nothing, themed

BINS = 30
OTHERS = "other classes"


def histogram(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> alt.Chart | alt.FacetChart:
    """One panel per pair, task and model; one colour per predicted class; every class has mass 1, whatever its size."""
    table = masses(rows, measure, k)
    if table.is_empty():
        return nothing(f"no text has a defined {measure_label(measure)}")
    pairs, panels = in_order(table["pair"]), in_order(table["panel"])
    drawn = _bars(table, measure).properties(width=max(130, (WIDTH - 80) // len(pairs) - 20), height=118)
    row, column = rows_of("panel", panels), columns_of("pair", pairs)
    return themed(
        drawn.facet(row=row, column=column, data=inline(_closed(table)), spacing={"row": 18, "column": 20}),
        f"Histograms of {measure_label(measure)} by predicted class, one panel per pair of importances and model.",
        table,
    )


def masses(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> pl.DataFrame:
    """The share of every class's texts in each of 30 bins on [−1, 1]: panel, pair, class, low, high, mass, n."""
    kept = without_noise(rows).filter(pl.col("measure") == measure, pl.col("k") == k, pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    place = ((pl.col("value") + 1) * BINS / 2).floor().cast(pl.Int64).clip(0, BINS - 1)  # +1 belongs to the last bin
    pairs = with_pair(kept.select("first", "second").unique())  # a label per pair, not per row
    panels = with_panel(_few_classes(kept)).with_columns(place.alias("bin"))
    named = panels.join(pairs, on=["first", "second"], maintain_order="left")
    counts = named.group_by("panel", "pair", "class", "bin", maintain_order=True).agg(pl.len().alias("count"))
    groups = counts.group_by("panel", "pair", "class", maintain_order=True).agg(pl.col("count").sum().alias("n"))
    full = groups.join(pl.DataFrame({"bin": range(BINS)}), how="cross").join(
        counts, on=["panel", "pair", "class", "bin"], how="left", maintain_order="left"
    )
    return full.select(
        "panel", "pair", "class",
        low=pl.col("bin") * 2 / BINS - 1, high=(pl.col("bin") + 1) * 2 / BINS - 1,
        mass=pl.col("count").fill_null(0) / pl.col("n"), n="n",
    )  # fmt: skip


def _few_classes(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `class`: the predicted one, as far as there are colours; the rarest together are "other classes"."""
    sizes = rows["predicted"].value_counts().sort(["count", "predicted"], descending=[True, False])
    own = sizes["predicted"] if len(sizes) <= len(PALETTE) else sizes["predicted"].head(len(PALETTE) - 1)
    kept = pl.when(pl.col("predicted").is_in(own.to_list())).then("predicted").otherwise(pl.lit(OTHERS))
    return rows.with_columns(kept.alias("class"))


def _closed(table: pl.DataFrame) -> pl.DataFrame:
    """A step holds to the next point: the last bin needs one more, at +1."""
    last = table.filter(pl.col("high") > 1 - 1e-9).with_columns(low=pl.lit(1.0))
    return pl.concat([table, last]).select("panel", "pair", "class", pl.col("low").round(6), pl.col("mass").round(6))


def _bars(table: pl.DataFrame, measure: str) -> alt.LayerChart:
    classes = sorted(in_order(table["class"]), key=lambda name: (name == OTHERS, name))
    colours = [NEUTRAL if name == OTHERS else PALETTE[i] for i, name in enumerate(classes)]
    scale = alt.Scale(domain=classes, range=colours)
    only_zero = alt.condition(alt.datum.value == 0, alt.value(1), alt.value(0))
    axis = alt.Axis(title=measure_label(measure), values=TICKS, format="~g", gridOpacity=only_zero)
    base = alt.Chart().encode(
        x=alt.X("low:Q", scale=alt.Scale(domain=[-1, 1], nice=False), axis=axis),
        y=alt.Y("mass:Q", axis=alt.Axis(title="share of texts", format="~%", tickCount=3)),
        color=alt.Color("class:N", scale=scale, legend=alt.Legend(symbolType="stroke", symbolSize=220)),
    )
    filled = base.mark_area(interpolate="step-after", opacity=0.22).encode(y=alt.Y("mass:Q", stack=None))
    return alt.LayerChart(layer=[filled, base.mark_line(interpolate="step-after", strokeWidth=1.5)])
