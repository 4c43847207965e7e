"""Seed stability: how far apart are the weights of models that differ by seed? (Wiegreffe & Pinter 2019)"""

import math

import altair as alt
import polars as pl
import torch

from exegete.base.noise import uniform
from exegete.report.panels import WIDTH, lines, series, with_panel
from exegete.report.theme import figure
from exegete.report.violin import Axis, half_shapes, halves

TICKS = (0, 0.2, 0.4, 0.6)
SHOWN = 300  # points of a panel: more would be a blot
SIDES = {"jsd": "other seeds", "permuted_jsd": "other seeds, permuted"}
AXIS = Axis("Jensen–Shannon divergence of the weights", math.log(2), TICKS)
NONE = "no text has two words"


def seed_spread(texts: pl.DataFrame) -> pl.DataFrame:
    """What is drawn."""
    return half_shapes(texts, SIDES, AXIS)


@figure(seed_spread, NONE)
def seed_violins(table: pl.DataFrame) -> alt.FacetChart:
    """Densities of the divergence between the attention of models with other seeds, by bins of the largest weight,
    beside that after permuting one of the two, a panel per model.
    """
    read = "Above a line: median JSD over other seeds, per text; below: after permuting one. Lines: quartiles."
    return halves(table, SIDES, AXIS).properties(title=read)


def seed_points(texts: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, class, jsd, tvd of a keyed choice of texts."""
    kept = texts.filter(pl.col("jsd").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    draw = uniform(
        0, torch.from_numpy(kept["example"].to_numpy().copy()), torch.from_numpy(kept["seed"].to_numpy().copy())
    )
    named = with_panel(kept).with_columns(pl.Series("draw", draw.numpy()))
    few = pl.col("draw").rank("ordinal").over("panel") <= SHOWN
    numbers = (pl.col("jsd", "tvd").round(4), pl.col("predicted").alias("class"))
    return named.filter(few).select("panel", *numbers)


@figure(seed_points, NONE)
def seed_scatter(table: pl.DataFrame) -> alt.FacetChart:
    """Every text's divergence of attention between seeds against the change of its prediction, a panel per model."""
    columns = min(table["panel"].n_unique(), 3)
    width = 480 if columns == 1 else (WIDTH - 60) // columns - 30
    drawn = _dots(table).properties(width=width, height=200)
    read = f"A point is a text, at most {SHOWN} of a model. Colour: the predicted class."
    return lines(drawn, table, columns).properties(title=read)


def _dots(table: pl.DataFrame) -> alt.Chart:
    colour, shape = series("class", sorted(table["class"].unique()))
    x = alt.Axis(title="JSD of the weights (median over seeds)", values=list(TICKS), format="~g", grid=False)
    y = alt.Axis(title="TVD of predictions (mean)", tickCount=4, format="~g")
    drawn: alt.Chart = (
        alt.Chart()
        .mark_point(filled=True, size=16, opacity=0.45)
        .encode(
            x=alt.X("jsd:Q", scale=alt.Scale(domain=[0, math.log(2)], nice=False), axis=x),
            y=alt.Y("tvd:Q", scale=alt.Scale(domain=[0, 1]), axis=y),
            color=colour,
            shape=shape,
        )
    )
    return drawn
