"""Violins: how is a number of texts spread, by bins of another number, and alike for every class?

Jain & Wallace (2019) draw their figures 6 and 8 so: bins of the largest weight from low to high, a violin per class in
each. A violin is a kernel density, mirrored; every one is equally high, so that its shape is read and not its size: n
stands beside it. Lines are quartiles. Densities are reflected at both ends of the axis, so that no mass lies where no
value can. Where there are too few texts for a density each one is a tick.

Two columns of the same texts are drawn as halves of one violin: above its line the first, below it the second.
"""

from collections.abc import Mapping
from typing import NamedTuple

import altair as alt
import numpy as np
import polars as pl

from exegete.measures.bins import BINS, bin_place
from exegete.report.density import Values, reflected_density
from exegete.report.panels import WIDTH, lines, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, nothing, themed

FEWEST = 5  # texts of a violin
PLACES = 101  # where a density is drawn
HALF = 0.44  # of the room of a violin, for its highest density
ROOM = 24  # pixels of a violin
TALL = 44  # pixels of one with two halves
OTHERS = "other classes"
THIN = 0.004  # of the highest density: where a violin ends
ROUNDING = 3  # decimals of a place in [−1, 1]: equal values are counted, so many texts cost what a few do
SCHEMA = {"kind": pl.String, "n": pl.Int64, "x": pl.Float64, "y": pl.Float64, "y2": pl.Float64}


class Axis(NamedTuple):
    """The axis of the values."""

    title: str
    top: float | None = None  # values lie in [0, top]; without, up to the largest
    ticks: tuple[float, ...] | None = None


class ViolinPlace(NamedTuple):
    """Where a group is drawn in the row of its bin."""

    shift: float = 0.0  # of its line
    half: float = HALF  # how far its highest density reaches
    ends: tuple[int, int] = (-1, 1)  # to both sides, or to one
    counted: bool = True  # whether n stands beside it


def violin(
    frame: pl.DataFrame,
    value: str,
    axis: Axis,
    against: str = "max_attention",
    against_title: str = "largest weight",
    by: str = "predicted",
) -> alt.Chart | alt.FacetChart:
    """One panel per task and model, a row per bin of `against` (a column in [0, 1]), a violin per value of `by`.

    `frame` has a row per text with columns task, model, and those that are named; what is null is left out.
    """
    table = shapes(frame, value, axis, against, by)
    if table.is_empty():
        return nothing("no text has a value")
    groups = _in_order_of_names(table["group"])
    colours = {name: NEUTRAL if name == OTHERS else PALETTE[i] for i, name in enumerate(groups)}
    read = (
        f"Colour: class. Lines: quartiles. All violins are equally high; n at the right; ticks: under {FEWEST} texts."
    )
    drawn = _panels(table, colours, axis, against_title, ROOM * len(groups) + 8).properties(title=read)
    said = f"Violins of {axis.title} by bins of the {against_title} and by class, a panel per model."
    return themed(drawn, said, table)


def halves(
    frame: pl.DataFrame, sides: Mapping[str, str], axis: Axis, against_title: str = "largest weight"
) -> alt.FacetChart:
    """One panel per task and model, a row per bin of the largest weight, the two columns that `sides` names as halves.

    `frame` is one of `half_shapes`.
    """
    colours = dict(zip(sides.values(), (PALETTE[0], NEUTRAL), strict=True))
    return _panels(frame, colours, axis, against_title, TALL)


def _panels(
    table: pl.DataFrame, colours: Mapping[str, str], axis: Axis, against_title: str, height: int
) -> alt.FacetChart:
    columns = 1 if table["panel"].n_unique() == 1 else 2
    width = 520 if columns == 1 else (WIDTH - 110) // 2 - 34
    drawn = _panel(table, colours, axis, against_title).properties(width=width, height=len(BINS) * height)
    return lines(drawn, table, columns, spacing=28)


def shapes(
    frame: pl.DataFrame, value: str, axis: Axis, against: str = "max_attention", by: str = "predicted"
) -> pl.DataFrame:
    """What is drawn: panel, group, bin, kind (density, quartile, tick or n), n, x, y and y2 (in rows of bins)."""
    kept = frame.filter(pl.col(value).is_not_null(), pl.col(against).is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    named = with_panel(few_groups(kept, by)).select("panel", "group", row=bin_place(pl.col(against)), value=value)
    groups = _in_order_of_names(named["group"])
    room = 1 / (len(groups) + 0.35)  # a gap between bins
    middle = (len(groups) - 1) / 2
    return _shapes(named, axis, {name: ViolinPlace(room * (i - middle), HALF * room) for i, name in enumerate(groups)})


def half_shapes(
    frame: pl.DataFrame, sides: Mapping[str, str], axis: Axis, against: str = "max_attention"
) -> pl.DataFrame:
    """Halves of violins of two columns of a frame, which `sides` names; texts that lack one of them are left out."""
    kept = frame.filter(pl.col(against).is_not_null(), *(pl.col(column).is_not_null() for column in sides))
    if kept.is_empty():
        return pl.DataFrame()
    wide = with_panel(kept).with_columns(row=bin_place(pl.col(against)))
    parts = [wide.select("panel", "row", value=column, group=pl.lit(name)) for column, name in sides.items()]
    up, down = sides.values()
    return _shapes(
        pl.concat(parts), axis, {up: ViolinPlace(ends=(0, 1)), down: ViolinPlace(ends=(-1, 0), counted=False)}
    )


def _shapes(named: pl.DataFrame, axis: Axis, places: Mapping[str, ViolinPlace]) -> pl.DataFrame:
    """Every violin of rows with panel, group, row (the number of a bin) and value."""
    top = axis.top or float(named["value"].max()) or 1.0  # type: ignore[arg-type]
    parts = []
    for (panel, group, row), some in named.group_by("panel", "group", "row", maintain_order=True):
        place = places[str(group)]
        shape = outline(some["value"].to_numpy().astype(np.float64), top, float(row) + place.shift, place)
        where = {"panel": panel, "group": group, "bin": BINS[row]}
        parts.append(shape.select(*(pl.lit(said).alias(name) for name, said in where.items()), pl.all()))
    return pl.concat(parts)


def outline(values: Values, top: float, line: float, place: ViolinPlace) -> pl.DataFrame:
    """One violin: its outline and quartiles, or a tick per text, and its number."""
    n, (down, up) = len(values), place.ends
    once = int(place.counted)
    end = {"kind": ["n"] * once, "x": [top] * once, "y": [line] * once, "y2": [line] * once}
    if n < FEWEST:
        ticks = {"kind": ["tick"] * n, "x": list(values)}
        ends = {"y": [line + down * place.half] * n, "y2": [line + up * place.half] * n}
        return pl.concat([_part(ticks | ends, n), _part(end, n)])
    at = np.linspace(-1, 1, PLACES)  # the density is that of a correlation: [0, top] becomes [−1, 1]
    there, counts = np.unique(np.clip(values * 2 / top - 1, -1, 1).round(ROUNDING), return_counts=True)
    height = reflected_density(there, at, counts.astype(np.float64))
    thick, x = height / height.max() * place.half, (at + 1) * top / 2
    seen = thick > THIN * place.half
    quarters = np.quantile(values, [0.25, 0.5, 0.75])
    wide = np.interp(quarters, x, thick)
    edge = {"kind": ["density"] * int(seen.sum()), "x": x[seen]}
    lines = {"kind": ["quartile", "median", "quartile"], "x": quarters}
    both = ((edge, thick[seen]), (lines, wide))
    parts = [_part(of | {"y": line + down * far, "y2": line + up * far}, n) for of, far in both]
    return pl.concat([*parts, _part(end, n)])


def _part(columns: Mapping[str, object], n: int) -> pl.DataFrame:
    frame = pl.DataFrame(columns).with_columns(n=pl.lit(n, pl.Int64))
    return frame.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()).with_columns(
        pl.col("x", "y", "y2").round(4)
    )


def few_groups(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Add `group`: as far as there are colours; the rarest together are "other classes"."""
    sizes = rows[by].value_counts().sort(["count", by], descending=[True, False])
    own = sizes[by] if len(sizes) <= len(PALETTE) else sizes[by].head(len(PALETTE) - 1)
    kept = pl.when(pl.col(by).is_in(own.to_list())).then(pl.col(by)).otherwise(pl.lit(OTHERS))
    return rows.with_columns(kept.alias("group"))


def _in_order_of_names(groups: pl.Series) -> list[str]:
    return sorted(groups.unique().to_list(), key=lambda name: (name == OTHERS, name))


def _panel(table: pl.DataFrame, colours: Mapping[str, str], axis: Axis, against: str) -> alt.LayerChart:
    rows = len(BINS)
    top = axis.top or float(table["x"].max())  # type: ignore[arg-type]
    labels = "[" + ", ".join(f"'{label}'" for label in BINS) + "][datum.value]"
    side = alt.Axis(title=against, values=list(range(rows)), labelExpr=labels, domain=False, grid=False, labelPadding=8)
    scale = alt.Scale(domain=[-0.5, rows - 0.5], nice=False)
    ticks = alt.Undefined if axis.ticks is None else list(axis.ticks)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title=axis.title, values=ticks, tickCount=5, format="~g", grid=True),
    )
    legend = alt.Legend(symbolType="square", symbolStrokeWidth=0) if len(colours) > 1 else None
    range_ = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("group:N", scale=range_, legend=legend)
    y = alt.Y("y:Q", scale=scale, axis=side)
    base = alt.Chart().encode(x=x, y=y, y2="y2:Q")
    several = alt.FieldOneOfPredicate(field="kind", oneOf=["quartile", "median"])
    thickness = alt.condition(alt.datum.kind == "median", alt.value(2), alt.value(0.8))
    layers = [
        base.transform_filter(alt.datum.kind == "density").mark_area(opacity=0.6).encode(color=colour, detail="bin:N"),
        base.transform_filter(several).mark_rule(style="mark").encode(strokeWidth=thickness),
        base.transform_filter(alt.datum.kind == "tick").mark_rule(strokeWidth=1.5).encode(color=colour),
        alt.Chart().transform_filter(alt.datum.kind == "n")
        .mark_text(style="note", align="left", dx=5, clip=False).encode(x=x, y=y, text="n:Q"),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers)
