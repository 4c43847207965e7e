"""Ties: how much of a low τ is disagreement, and how much is sparse attention? (PROTOCOLS 4)

Sparse attention gives most words exactly 0. Words that tie can't be ordered, so τ-b can't reach 1: even a perfect match of the two rankings
stops at its attainable maximum. Beside raw τ-b stand that maximum, τ-b as a share of it, and γ, which looks only at words that no list ties.
"""

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.figures.labels import measure_label, model_labels, task_label
from exegete.figures.panels import WIDTH, columns_of, in_order, rows_of, with_pair
from exegete.figures.theme import PALETTE, SHAPES, inline, nothing, themed

MEASURES = ("tau", "tau_corrected", "gamma")
MAXIMUM = "largest τ-b that the ties allow"
PAIRS = (("attention", "gradient"), ("attention", "leave_one_out"))


def ties(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> alt.Chart | alt.FacetChart:
    """Dots with 95 % intervals: a line per model, a column per pair, a row per task; the bar behind raw τ-b is the room that ties leave it."""
    table = coefficients(summary, pairs)
    if table.is_empty():
        return nothing("no pair of attention with another importance has a defined τ")
    models, shown, tasks = in_order(table["model"]), in_order(table["pair"]), in_order(table["task"])
    drawn = _panel(table, models).properties(width=(WIDTH - 130) // len(shown) - 20, height=alt.Step(13))
    faceted = drawn.facet(
        **_facets(tasks), column=columns_of("pair", shown), data=inline(table), spacing={"row": 18, "column": 24}
    )
    return themed(
        faceted.properties(
            title="Dots: means with 95 % intervals. Grey bar: the room that ties leave τ-b, up to its attainable maximum."
        ),
        "Raw tau-b, its attainable maximum, tau-b as a share of it, and gamma, by model and pair of importances.",
    )


def coefficients(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> pl.DataFrame:
    """What is drawn: task, pair, model (softmax first), coefficient, value, low, high; the maximum has no interval."""
    among = pl.any_horizontal([(pl.col("first") == first) & (pl.col("second") == second) for first, second in pairs])
    kept = summary.filter(
        pl.col("class") == "all", pl.col("measure").is_in(MEASURES), pl.col("mean").is_not_null()
    ).filter(among)
    if kept.is_empty():
        return pl.DataFrame()
    labels = model_labels(kept["model"])
    named = with_pair(kept).with_columns(
        task=pl.col("task").map_elements(task_label, return_dtype=pl.String),
        sparse=pl.col("model").map_elements(_is_sparse, return_dtype=pl.Boolean),
        model=pl.col("model").replace_strict(labels),
    )
    ordered = named.sort("sparse", maintain_order=True)
    means = ordered.select(
        "task",
        "pair",
        "model",
        coefficient=pl.col("measure").replace_strict(_NAMES),
        value="mean",
        low="low",
        high="high",
    )
    highest = ordered.filter(pl.col("measure") == "tau").select(
        "task", "pair", "model", coefficient=pl.lit(MAXIMUM), value="maximum", low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64),
    )  # fmt: skip
    return pl.concat([means, highest.drop_nulls("value")])


def _is_sparse(model: str) -> bool:
    return parse(model).settings.get("projection", "softmax") != "softmax"


def _facets(tasks: list[str]) -> dict[str, alt.Row]:
    """A row per task, where there are several."""
    return {"row": rows_of("task", tasks)} if len(tasks) > 1 else {}


def _panel(table: pl.DataFrame, models: list[str]) -> alt.LayerChart:
    lanes = list(_NAMES.values())
    floor = min(0.0, *table["low"].drop_nulls(), *table["value"])
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[floor, 1], nice=floor < 0),
        axis=alt.Axis(title="mean coefficient", format="~g", tickCount=5),
    )
    base = alt.Chart().encode(
        y=alt.Y(
            "model:N",
            sort=models,
            axis=alt.Axis(title=None, domain=False, ticks=False),
            scale=alt.Scale(paddingInner=0.25),
        ),
        yOffset=alt.YOffset("lane:N", sort=lanes),
    )
    room = base.transform_filter(alt.datum.coefficient == MAXIMUM).transform_calculate(lane=f"'{lanes[0]}'", zero="0")
    dots = base.transform_filter(alt.datum.coefficient != MAXIMUM).transform_calculate(lane="datum.coefficient")
    colour = alt.Color("coefficient:N", scale=alt.Scale(domain=lanes, range=list(PALETTE[:3])))
    return alt.layer(
        room.mark_bar(style="room", height=9).encode(x=x, x2="zero:Q"),
        room.mark_tick(style="mark", thickness=1.5, height=11, opacity=1).encode(x=x),
        dots.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        dots.mark_point(filled=True, size=48, opacity=1).encode(
            x=x, color=colour, shape=alt.Shape("coefficient:N", scale=alt.Scale(domain=lanes, range=list(SHAPES[:3])))
        ),
    )


_NAMES = {name: measure_label(name) for name in MEASURES}
