"""Bands: how are values spread in each of a few bands, and how is their reference spread beside them?

A split violin per band: above its line the density of the values, below it that of the reference, each with a bar at
its median. Densities are reflected at both ends of the scale, so that no mass lies where no value can.
"""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import polars as pl

from exegete.figures.density import reflected_density
from exegete.figures.panels import WIDTH, in_lines, in_order
from exegete.figures.theme import NEUTRAL, PALETTE, inline

PLACES = 81  # where a density is drawn
HALF = 0.42  # of the room of a band, for its highest density
ROUNDING = 3  # decimals of a value: equal values are counted


class Scale(NamedTuple):
    """The axis of the values, and what the two sides are called."""

    title: str
    top: float  # values lie in [0, top]
    ticks: Sequence[float]
    sides: tuple[str, str]  # values, reference
    bands: str  # what the bands are of


def shapes(kept: pl.DataFrame, bands: Sequence[str], scale: Scale) -> pl.DataFrame:
    """What is drawn: panel, band, side, kind (density or median), n, x, line (the band's place), y.

    `kept` has columns panel, band, value and reference; a side without values in a band is left out.
    """
    found = []
    for panel in in_order(kept["panel"]):
        for line, band in enumerate(bands):
            own = kept.filter(pl.col("panel") == panel, pl.col("band") == band)
            both = [_shape(own[column], scale) for column in ("value", "reference")]
            highest = max((float(h) for h in pl.concat(both)["height"]), default=1.0)
            said = {"panel": pl.lit(panel), "band": pl.lit(band), "line": pl.lit(float(line))}
            found += [
                part.with_columns(**said, side=pl.lit(side), y=line + up * HALF * pl.col("height") / highest)
                for part, side, up in zip(both, scale.sides, (1, -1), strict=True)
            ]
    return pl.concat(found).select("panel", "band", "side", "kind", "n", "x", "line", "y")


def _shape(values: pl.Series, scale: Scale) -> pl.DataFrame:
    """The density of some values and their median: kind, n, x, height."""
    schema = {"kind": pl.String, "n": pl.Int64, "x": pl.Float64, "height": pl.Float64}
    counts = values.drop_nulls().round(ROUNDING).value_counts().sort(values.name)
    if counts.is_empty():
        return pl.DataFrame(schema=schema)
    # The density is that of a correlation: [0, top] becomes [−1, 1].
    at, there = np.linspace(-1, 1, PLACES), counts[values.name].to_numpy() * 2 / scale.top - 1
    height = reflected_density(np.clip(there, -1, 1), at, counts["count"].to_numpy().astype(np.float64))
    n, middle = int(counts["count"].sum()), float(values.drop_nulls().median())  # type: ignore[arg-type]
    place = (at + 1) * scale.top / 2
    drawn = pl.DataFrame({"kind": "density", "n": n, "x": place.round(5), "height": height.round(5)}, schema=schema)
    tick = {"kind": "median", "n": n, "x": round(middle, 5), "height": float(height.max())}
    return pl.concat([drawn, pl.DataFrame([tick], schema=schema)])


def bands(table: pl.DataFrame, order: Sequence[str], scale: Scale) -> alt.FacetChart:
    """A panel per model, a line per band."""
    panels = in_order(table["panel"])
    columns = min(len(panels), 2)
    width = {1: 520, 2: (WIDTH - 90) // 2 - 20}[columns]
    header = alt.Header(title=None, labelAnchor="start", labelExpr=in_lines(panels, width // 6))
    facet = alt.Facet("panel:N", sort=panels, header=header)
    drawn = _panel(order, scale).properties(width=width, height=44 * len(order))
    return drawn.facet(facet, columns=columns, data=inline(table), spacing=24)


def _panel(order: Sequence[str], scale: Scale) -> alt.LayerChart:
    names = "[" + ", ".join(f"'{band}'" for band in order) + "][datum.value]"
    places = alt.Scale(domain=[-0.5, len(order) - 0.5], nice=False)
    axis = alt.Axis(title=scale.bands, values=list(range(len(order))), labelExpr=names, domain=False, labelPadding=8)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, scale.top], nice=False),
        axis=alt.Axis(title=scale.title, values=list(scale.ticks), format="~g", grid=False),
    )
    sides = alt.Scale(domain=list(scale.sides), range=[PALETTE[0], NEUTRAL])
    colour = alt.Color("side:N", scale=sides, legend=alt.Legend(symbolType="square", symbolStrokeWidth=0))
    y, line = (alt.Y(f"{name}:Q", scale=places, axis=axis) for name in ("y", "line"))
    base = alt.Chart().encode(x=x)
    spread = base.transform_filter(alt.datum.kind == "density")
    middle = base.transform_filter(alt.datum.kind == "median")
    layers = [
        spread.mark_area(opacity=0.55).encode(y=y, y2="line:Q", color=colour, detail="band:N"),
        middle.mark_rule(style="mark", strokeWidth=2).encode(y=line, y2="y:Q"),
    ]
    return alt.LayerChart(layer=layers)
