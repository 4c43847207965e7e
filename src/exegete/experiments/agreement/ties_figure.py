"""Ties: how much of a low τ is disagreement, and how much is sparse attention? (PROTOCOLS 4)

Sparse attention gives most words exactly 0. Words that tie can't be ordered, so τ-b can't reach 1: even a perfect match
of two rankings stops at its attainable maximum. Beside raw τ-b stand that maximum, τ-b as a share of it, and γ, which
looks only at words that no list ties.
"""

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.page.labels import measure_label
from exegete.page.panels import WIDTH, grid, in_order, named, series, with_pair
from exegete.page.theme import nothing, themed

MEASURES = {name: measure_label(name) for name in ("tau", "tau_corrected", "gamma")}
MAXIMUM = "largest τ-b that the ties allow"
PAIRS = (("attention", "gradient"), ("attention", "leave_one_out"))


def ties(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per model, a column per pair, a row per task; bars are the room that ties leave."""
    table = coefficients(summary, pairs)
    if table.is_empty():
        return nothing("no pair of attention with another importance has a defined τ")
    width = (WIDTH - 130) // table["pair"].n_unique() - 20
    faceted = grid(_panel(table).properties(width=width, height=alt.Step(13)), table, "pair", "task")
    read = "Dots: means with 95 % intervals. Grey bar: the room that ties leave τ-b, up to its attainable maximum."
    return themed(
        faceted.properties(title=read),
        "Raw τ-b, its attainable maximum, τ-b as a share of it, and γ, by model and pair of importances.",
        table,
    )


def coefficients(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> pl.DataFrame:
    """What is drawn: task, pair, model (softmax first), coefficient, value, low, high; the maximum has no interval."""
    among = pl.any_horizontal([(pl.col("first") == first) & (pl.col("second") == second) for first, second in pairs])
    ours = pl.col("measure").is_in(list(MEASURES))
    kept = summary.filter(among, ours, pl.col("class") == "all", pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    ordered = _named(kept).sort("sparse", maintain_order=True)
    means = ordered.select("task", "pair", "model", "coefficient", value="mean", low="low", high="high")
    raw = ordered.filter(pl.col("measure") == "tau").drop_nulls("maximum")
    alone = {"low": pl.lit(None, pl.Float64), "high": pl.lit(None, pl.Float64)}
    return pl.concat(
        [means, raw.select("task", "pair", "model", coefficient=pl.lit(MAXIMUM), value="maximum", **alone)]
    )


def _named(summary: pl.DataFrame) -> pl.DataFrame:
    """Labels for specifications, and which models are sparse."""
    sparse = pl.col("model").map_elements(_is_sparse, return_dtype=pl.Boolean)
    return named(with_pair(summary).with_columns(sparse=sparse, coefficient=pl.col("measure").replace_strict(MEASURES)))


def _is_sparse(model: str) -> bool:
    return parse(model).settings.get("projection", "softmax") != "softmax"


def _panel(table: pl.DataFrame) -> alt.LayerChart:
    lanes = list(MEASURES.values())
    lowest = min(0.0, *table["low"].drop_nulls(), *table["value"])
    axis = alt.Axis(title="mean coefficient", format="~g", tickCount=5)
    x = alt.X("value:Q", scale=alt.Scale(domain=[lowest, 1], nice=lowest < 0), axis=axis)
    plain = alt.Axis(title=None, domain=False, ticks=False)
    base = alt.Chart().encode(
        y=alt.Y("model:N", sort=in_order(table["model"]), axis=plain, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("lane:N", sort=lanes),
    )
    room = base.transform_filter(alt.datum.coefficient == MAXIMUM).transform_calculate(lane=f"'{lanes[0]}'", zero="0")
    dots = base.transform_filter(alt.datum.coefficient != MAXIMUM).transform_calculate(lane="datum.coefficient")
    colour, shape = series("coefficient", lanes)
    layers = [
        room.mark_bar(style="room", height=9).encode(x=x, x2="zero:Q"),
        room.mark_tick(style="mark", thickness=1.5, height=11, opacity=1).encode(x=x),
        dots.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        dots.mark_point(filled=True, size=48, opacity=1).encode(x=x, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)
