"""Densities: how are the coefficients of each pair spread over the texts? (Neely & Schouten 2020, figures 1 and 2)

A rank correlation lies in [−1, 1], but a plain kernel density spills beyond: published figures show texts with τ > 1.
Ours reflects at ±1, so that the mass a kernel would put outside comes back where it can be: the curve integrates to 1
on [−1, 1] and isn't pulled down at an edge where many texts are (two common words, say, give exactly ±1).
"""

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray

from exegete.report.labels import measure_label, with_pair
from exegete.report.panels import TICKS, in_order, lines, with_panel, without_noise
from exegete.report.theme import DASHES, PALETTE, nothing, themed

Values = NDArray[np.float64]

GRID: Values = np.linspace(-1, 1, 161)
NARROWEST = 0.02  # of a bandwidth: texts that all agree are a narrow peak, not a division by zero
ROUNDING = 3  # decimals, far below any bandwidth: equal coefficients are counted, so a million texts cost what 2,001 do


def density(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> alt.Chart | alt.FacetChart:
    """One panel per task and model, one curve per pair, a vertical rule at chance."""
    table = density_curves(rows, measure, k)
    if table.is_empty():
        return nothing(f"no text has a defined {measure_label(measure)}")
    panels = table["panel"].n_unique()
    columns = 1 if panels == 1 else 2 if panels in (2, 4) else 3
    size = {1: 480, 2: 340, 3: 220}[columns]
    drawn = _panel(table, measure).properties(width=size, height=150)
    return themed(
        lines(drawn, table, columns).properties(title="Vertical line: chance."),
        f"Densities of {measure_label(measure)} over texts, a panel per model, a curve per pair of importances.",
        table,
    )


def density_curves(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> pl.DataFrame:
    """The curves, and the place of chance: panel, pair, kind (density or chance), x, y."""
    kept = without_noise(rows).filter(pl.col("measure") == measure, pl.col("k") == k, pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    pairs = with_pair(kept.select("first", "second").unique())  # a label per pair, not per row
    panels = with_panel(kept).with_columns(pl.col("value").round(ROUNDING))
    named = panels.join(pairs, on=["first", "second"], maintain_order="left")
    parts = [
        _curve(str(panel), str(pair), group)
        for (panel, pair), group in named.group_by("panel", "pair", maintain_order=True)
    ]
    chances = named.group_by("panel", maintain_order=True).agg(pl.col("chance").mean().alias("x")).drop_nulls()
    rules = chances.select(
        "panel", pair=pl.lit(None, pl.String), kind=pl.lit("chance"), x=pl.col("x").round(4), y=pl.lit(None, pl.Float64)
    )
    return pl.concat([*parts, rules])


def _curve(panel: str, pair: str, group: pl.DataFrame) -> pl.DataFrame:
    counts = group["value"].value_counts().sort("value")
    height = reflected_density(counts["value"].to_numpy(), GRID, counts["count"].to_numpy().astype(np.float64))
    return pl.DataFrame({"panel": panel, "pair": pair, "kind": "density", "x": GRID.round(6), "y": height.round(5)})


def reflected_density(values: Values, at: Values, counts: Values | None = None, width: float | None = None) -> Values:
    """A Gaussian kernel density on [−1, 1]: (1 / nh) Σ_i Σ_x' φ((x − x') / h), x' the images of x_i in mirrors at ±1.

    Two mirrors give infinitely many images, x_i + 4m and 2 − x_i + 4m; kernels are far narrower than 4: three m do.
    """
    times = np.ones(len(values)) if counts is None else counts
    h = bandwidth(values, times) if width is None else width
    images = np.concatenate([image + 4 * turn for turn in (-1, 0, 1) for image in (values, 2 - values)])  # [6 · value]
    kernels = np.exp(-0.5 * ((at[:, None] - images) / h) ** 2)  # [place, 6 · value]
    height: Values = kernels @ np.tile(times, 6) / (times.sum() * h * np.sqrt(2 * np.pi))
    return height


def bandwidth(values: Values, counts: Values) -> float:
    """Silverman's rule of thumb (1986, equation 3.31): 0.9 min(std, IQR / 1.34) n^(−1/5)."""
    n = counts.sum()
    std = np.sqrt(counts @ (values - counts @ values / n) ** 2 / n)
    order = np.argsort(values)
    ranked = np.searchsorted(np.cumsum(counts[order]), [n / 4, 3 * n / 4])
    quarter, three_quarters = values[order][ranked]
    spread = min(std, (three_quarters - quarter) / 1.34) or std  # half of the texts may share one coefficient
    return max(float(0.9 * spread * n**-0.2), NARROWEST)


def _panel(table: pl.DataFrame, measure: str) -> alt.LayerChart:
    pairs = [pair for pair in in_order(table["pair"]) if pair is not None]
    rounds = range(len(pairs))
    colours = alt.Scale(domain=pairs, range=[PALETTE[i % len(PALETTE)] for i in rounds])
    dashes = alt.Scale(domain=pairs, range=[list(DASHES[i % len(DASHES)]) for i in rounds])
    axis = alt.Axis(title=measure_label(measure), values=TICKS, format="~g", grid=False)
    base = alt.Chart().encode(x=alt.X("x:Q", scale=alt.Scale(domain=[-1, 1], nice=False), axis=axis))
    curve = base.transform_filter(alt.datum.kind == "density").encode(
        y=alt.Y("y:Q", axis=alt.Axis(title="density", tickCount=3)),
        color=alt.Color("pair:N", scale=colours, legend=alt.Legend(symbolType="stroke", symbolSize=500)),
    )
    layers = [
        base.transform_filter(alt.datum.kind == "chance").mark_rule(style="chance"),
        curve.mark_area(opacity=0.12).encode(y=alt.Y("y:Q", stack=None)),
        curve.mark_line(strokeWidth=1.8).encode(strokeDash=alt.StrokeDash("pair:N", scale=dashes)),
    ]
    return alt.LayerChart(layer=layers)
