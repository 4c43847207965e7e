"""Heads: grids of layers and heads, shaded by what each is worth and by where it looks, and accuracy without heads.

A hue says the sign and the shade the size, so that a grid reads on white and on black; a dot says once more which
intervals leave 0 out.
"""

import math
from typing import Any

import altair as alt
import polars as pl

from exegete.experiments.heads.looks import SENSITIVITY, TAU
from exegete.experiments.heads.patterns import SHARES
from exegete.report.panels import WIDTH, columns_of, in_order, lines, rows_of, series, with_panel
from exegete.report.theme import DASHES, PALETTE, figure, inline, nothing, themed

LOSES, GAINS = "worse without it", "better without it"
WAYS = {"silence": "all of it", "silence:sinks=false": "all but sinks", "uniform": "made uniform"}
MEASURES = {
    "first": "on the first token",
    "end": "on end symbols",
    "punctuation": "on punctuation",
    "same": "on the token itself",
    "previous": "on the one before",
    "next": "on the one after",
    "entropy": "entropy",
    "entropy_without_sinks": "entropy, no sinks",
    "distance": "distance, in tokens",
    "distance_without_sinks": "distance, no sinks",
    SENSITIVITY: "sensitivity of the loss",
    TAU: "τ with importance",
}
ORDERS = {"sensitivity": "the least sensitive first", "random": "in random order"}
CELL = ("task", "model", "split")
ACROSS = 4  # grids side by side
UNIT = (*SHARES, "entropy", "entropy_without_sinks", TAU)  # what is 1 at most


def effects_drawn(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, way, layer, head, mean, low, high, side (the hue), shade (0 to 1), told (0 is left out)."""
    kept = summary.filter(pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    size = pl.col("mean").abs()
    most = size.max().over("panel", "way")
    named = with_panel(kept).with_columns(way=pl.col("how").replace(WAYS))
    return named.select(
        "panel", "way", "layer", "head", "mean", "low", "high",
        side=pl.when(pl.col("mean") < 0).then(pl.lit(GAINS)).otherwise(pl.lit(LOSES)),
        shade=pl.when(most > 0).then(size / most).otherwise(0.0),
        told=(pl.col("low") > 0) | (pl.col("high") < 0),
    )  # fmt: skip


def grid_of(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """A grid per model and way, a line per layer (the first at the bottom), a column per head."""
    table = effects_drawn(summary)
    if table.is_empty():
        return nothing("no head was silenced")
    ways, panels = in_order(table["way"]), in_order(table["panel"])
    side = _cell(table, len(ways))
    x, y = _places(table, side)
    scale = alt.Scale(domain=[LOSES, GAINS], range=[PALETTE[1], PALETTE[0]])
    colour = alt.Color("side:N", scale=scale, legend=alt.Legend(symbolType="square", symbolStrokeWidth=0))
    shade = alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 1]), legend=None)
    base = alt.Chart().encode(x=x, y=y)
    drawn = alt.LayerChart(
        layer=[
            base.mark_rect().encode(color=colour, opacity=shade),
            base.transform_filter("datum.told").mark_circle(style="mark", size=max(8, side * 0.9), opacity=0.9),
        ]
    ).properties(width=alt.Step(side), height=alt.Step(side))
    down = rows_of("panel", panels) if len(panels) > 1 else alt.Undefined
    faceted = drawn.facet(row=down, column=columns_of("way", ways), data=inline(table), spacing=24)
    read = [
        "Log-odds of the prediction that are lost without a head: full shade is the largest of its grid.",
        "Dot: the 95 % interval leaves 0 out, which one head in twenty does by chance.",
    ]
    told = "A grid of layers and heads for every model, shaded by what the prediction loses when a head is silenced."
    return themed(faceted.properties(title=read), told, table)


def _cell(table: pl.DataFrame, across: int) -> int:
    """Pixels of a head, so that all grids side by side fit."""
    heads = int(table["head"].to_numpy().max()) + 1
    return max(7, min(26, (WIDTH - 90 - 24 * across) // (across * heads)))


def _places(table: pl.DataFrame, side: int) -> tuple[alt.X, alt.Y]:
    """Heads from the left, layers from the bottom; where cells are small, not every number is written."""
    heads, layers = (sorted(table[name].unique()) for name in ("head", "layer"))
    every = math.ceil(16 / side)
    plain: dict[str, Any] = {"grid": False, "domain": False, "ticks": False, "labelAngle": 0}
    x = alt.X("head:O", axis=alt.Axis(title="head", values=heads[::every], **plain))
    y = alt.Y("layer:O", sort=layers[::-1], axis=alt.Axis(title="layer", values=layers[::every], **plain))
    return x, y


def looks_drawn(table: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel (measure, after the model where there are several), layer, head, mean, shade."""
    kept = table.filter(pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    place = pl.col("measure").replace_strict({name: i for i, name in enumerate(MEASURES)})
    most = pl.col("mean").abs().max().over("task", "model", "split", "measure")
    shade = pl.when(pl.col("measure").is_in(UNIT)).then(pl.col("mean")).otherwise(pl.col("mean") / most)
    said = pl.col("measure").replace_strict(MEASURES)
    named = with_panel(kept.sort(place, maintain_order=True))
    several = named["panel"].n_unique() > 1
    panel = pl.concat_str("panel", pl.lit(" · "), said) if several else said
    return named.select(panel.alias("panel"), "layer", "head", "mean", shade=shade.clip(0.0, 1.0).fill_nan(0.0))


@figure(looks_drawn, "no head looked at anything")
def looks(table: pl.DataFrame) -> alt.FacetChart:
    """A grid of layers and heads for each thing that was measured of where heads look."""
    side = min(16, _cell(table, ACROSS))
    x, y = _places(table, side)
    shade = alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 1]), legend=None)
    cells = alt.Chart().mark_rect(color=PALETTE[0]).encode(x=x, y=y, opacity=shade)
    heads = int(table["head"].to_numpy().max()) + 1
    drawn = cells.properties(width=max(side, 120 // heads) * heads, height=alt.Step(side))
    read = (
        "Shares, entropy and τ: full shade is 1, and a τ below 0 has none. Distances and sensitivity: the largest of "
        "the grid."
    )
    return lines(drawn, table, ACROSS).properties(title=read)


def curve_drawn(table: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, order, share of heads gone, mean, low, high, unaltered, majority, in percent."""
    if table.is_empty():
        return pl.DataFrame()
    scores = ("mean", "low", "high", "unaltered", "majority")
    start = table.unique([*CELL, "order"], maintain_order=True).with_columns(
        gone=pl.lit(0, pl.Int64), mean="unaltered", low="unaltered", high="unaltered"
    )
    every = with_panel(pl.concat([start, table])).sort("order", "gone", maintain_order=True)
    percents = (pl.col(name).cast(pl.Float64) * 100 for name in scores)
    return every.select(
        "panel", pl.col("order").replace(ORDERS), *percents, gone=100 * pl.col("gone") / pl.col("of"), heads="gone"
    )


@figure(curve_drawn, "no head was pruned")
def pruning(table: pl.DataFrame) -> alt.FacetChart:
    """Accuracy against the share of heads that are gone, a line per order, a panel per task and model."""
    orders = [said for said in ORDERS.values() if said in set(table["order"])]
    x = alt.X("gone:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title="heads pruned (%)", grid=False))
    ends = [value for name in ("mean", "low", "high", "majority") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[max(0.0, min(ends) - 5), 100], nice=False)
    said = alt.Axis(title="accuracy (%)", tickCount=5)
    ys = {n: alt.Y(f"{n}:Q", scale=scale, axis=said) for n in ("mean", "low", "unaltered", "majority")}
    colour, shape = series("order", orders)
    base = alt.Chart().encode(x=x)
    once = alt.Chart().transform_aggregate(unaltered="mean(unaltered)", majority="mean(majority)")
    drawn = alt.LayerChart(
        layer=[
            once.mark_rule(style="chance", strokeWidth=0.7).encode(y=ys["majority"]),
            once.mark_rule(style="mark", strokeWidth=1.4, strokeDash=list(DASHES[2])).encode(y=ys["unaltered"]),
            base.mark_area(opacity=0.15).encode(y=ys["low"], y2="high:Q", color=colour),
            base.mark_line(strokeWidth=1.8).encode(y=ys["mean"], color=colour),
            base.mark_point(filled=True, size=44, opacity=1).encode(y=ys["mean"], color=colour, shape=shape),
        ]
    )
    across = min(2, table["panel"].n_unique())
    sized = drawn.properties(width=min(440, (WIDTH - 80) // across - 20), height=220)
    read = "Heads that give nothing, ever more of them, without any training. Dotted: as it is. Thin: the majority."
    return lines(sized, table, across).properties(title=read)
