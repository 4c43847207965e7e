"""Agreement: histograms of τ by predicted class, what ties allow it, and which top-k coefficient tells from noise.

Ties: sparse attention gives most words exactly 0. Words that tie can't be ordered, so τ-b can't reach 1:
even a perfect match of two rankings stops at its attainable maximum. Beside raw τ-b stand that maximum, τ-b as a share
of it, and γ, which looks only at words that no list ties.

Top-k (Jain & Wallace 2019, Neely & Schouten 2020, and its repairs): the legacy coefficient gives unrelated lists about
+0.8, so "attention agrees with gradients at +0.8" says nothing. Beside every mean of attention stand that of random
scores and the chance level: where they meet, it is blind.
"""

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.report.labels import importance_label, measure_label, name_columns, pair_label, size_label, with_pair
from exegete.report.panels import (
    NOISE,
    TICKS,
    WIDTH,
    columns_of,
    grid,
    in_order,
    rows_of,
    series,
    with_panel,
    without_noise,
)
from exegete.report.theme import NEUTRAL, PALETTE, inline, nothing, themed
from exegete.report.violin import OTHERS, few_groups

BINS = 30


def histogram(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> alt.Chart | alt.FacetChart:
    """One panel per pair, task and model; one colour per predicted class; every class has mass 1, whatever its size.

    (Jain & Wallace 2019, figure 2)
    """
    table = coefficient_masses(rows, measure, k)
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


def coefficient_masses(rows: pl.DataFrame, measure: str = "tau", k: str = "all") -> pl.DataFrame:
    """The share of every class's texts in each of 30 bins on [−1, 1]: panel, pair, class, low, high, mass, n."""
    kept = without_noise(rows).filter(pl.col("measure") == measure, pl.col("k") == k, pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    place = ((pl.col("value") + 1) * BINS / 2).floor().cast(pl.Int64).clip(0, BINS - 1)  # +1 belongs to the last bin
    pairs = with_pair(kept.select("first", "second").unique())  # a label per pair, not per row
    panels = with_panel(few_groups(kept, "predicted").rename({"group": "class"})).with_columns(place.alias("bin"))
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


RAW = ("tau", "tau_corrected", "gamma")
COEFFICIENTS = dict(zip(RAW, map(measure_label, RAW), strict=True))
MAXIMUM = "largest τ-b that the ties allow"
PAIRS = (("attention", "gradient"), ("attention", "leave_one_out"))


def ties(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per model, a column per pair, a row per task; bars are the room that ties leave."""
    table = agreement_coefficients(summary, pairs)
    if table.is_empty():
        return nothing("no pair of attention with another importance has a defined τ")
    width = (WIDTH - 130) // table["pair"].n_unique() - 20
    faceted = grid(_room(table).properties(width=width, height=alt.Step(13)), table, "pair", "task")
    read = "Dots: means with 95 % intervals. Grey bar: the room that ties leave τ-b, up to its attainable maximum."
    return themed(
        faceted.properties(title=read),
        "Raw τ-b, its attainable maximum, τ-b as a share of it, and γ, by model and pair of importances.",
        table,
    )


def agreement_coefficients(summary: pl.DataFrame, pairs: tuple[tuple[str, str], ...] = PAIRS) -> pl.DataFrame:
    """What is drawn: task, pair, model (softmax first), coefficient, value, low, high; the maximum has no interval."""
    among = pl.any_horizontal([(pl.col("first") == first) & (pl.col("second") == second) for first, second in pairs])
    ours = pl.col("measure").is_in(list(COEFFICIENTS))
    kept = summary.filter(among, ours, pl.col("class") == "all", pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    ordered = _told(kept).sort("sparse", maintain_order=True)
    means = ordered.select("task", "pair", "model", "coefficient", value="mean", low="low", high="high")
    raw = ordered.filter(pl.col("measure") == "tau").drop_nulls("maximum")
    alone = {"low": pl.lit(None, pl.Float64), "high": pl.lit(None, pl.Float64)}
    return pl.concat(
        [means, raw.select("task", "pair", "model", coefficient=pl.lit(MAXIMUM), value="maximum", **alone)]
    )


def _told(summary: pl.DataFrame) -> pl.DataFrame:
    """Labels for specifications, and which models are sparse."""
    sparse = pl.col("model").map_elements(_is_sparse, return_dtype=pl.Boolean)
    return name_columns(
        with_pair(summary).with_columns(sparse=sparse, coefficient=pl.col("measure").replace_strict(COEFFICIENTS))
    )


def of_sparse(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of models whose attention may be exactly 0: with softmax all words have weight, and top k is all."""
    sparse = [model for model in in_order(rows["model"]) if _is_sparse(model)]
    return rows.filter(pl.col("model").is_in(sparse))


def _is_sparse(model: str) -> bool:
    return parse(model).settings.get("projection", "softmax") != "softmax"


def _room(table: pl.DataFrame) -> alt.LayerChart:
    lanes = list(COEFFICIENTS.values())
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


TOPK = ("legacy", "fagin", "bucket")


def topk(
    summary: pl.DataFrame, first: str = "attention", second: str = "gradient", noise: str = NOISE
) -> alt.Chart | alt.FacetChart:
    """Means with intervals against k, a column per coefficient, a row per model; above, attention minus its chance."""
    table = agreement_levels(summary, first, second, noise)
    if table.is_empty():
        return nothing(f"no top-k coefficient of {pair_label(first, second)}")
    measures, panels = in_order(table["measure"]), in_order(table["panel"])
    drawn = _against_k(table, first, second, noise).properties(width=(WIDTH - 80) // len(measures) - 16, height=150)
    row, column = rows_of("panel", panels), columns_of("measure", measures)
    read = f"Dots: means with 95 % intervals. Short lines: chance. Numbers: {importance_label(first)} minus its chance."
    return themed(
        drawn.facet(row=row, column=column, data=inline(table), spacing={"row": 34, "column": 16}).properties(
            title=read
        ),
        f"Top-k coefficients of {pair_label(first, second)} and of {pair_label(noise, second)} against k, with chance, "
        "one column per coefficient and one row per model.",
        table,
    )


def agreement_levels(
    summary: pl.DataFrame, first: str = "attention", second: str = "gradient", noise: str = NOISE
) -> pl.DataFrame:
    """What is drawn: panel, measure, k, series (the pair), mean, low, high, chance, and `above`: mean minus chance.

    Noise has no ties, sparse attention has many, and ties alone can lift a coefficient: a pair is held against its own
    chance.
    """
    kept = summary.filter(
        pl.col("class") == "all", pl.col("measure").is_in(TOPK), pl.col("first").is_in([first, noise]),
        pl.col("second") == second, pl.col("mean").is_not_null(),
    )  # fmt: skip
    if kept.filter(pl.col("first") == first).is_empty():
        return pl.DataFrame()
    named = with_panel(kept).with_columns(
        series=pl.col("first").replace_strict({name: pair_label(name, second) for name in (first, noise)}),
        measure=pl.col("measure").replace_strict({name: measure_label(name) for name in TOPK}),
        k=pl.col("k").map_elements(size_label, return_dtype=pl.String),
        above=pl.col("mean") - pl.col("chance"),
        order=pl.col("measure").replace_strict({name: place for place, name in enumerate(TOPK)}),
    )
    return named.sort("order", maintain_order=True).select(
        "panel", "measure", "k", "series", "mean", "low", "high", "chance", "above"
    )


def _sizes(table: pl.DataFrame) -> list[str]:
    """k in order: numbers by size, then rules."""
    return sorted(in_order(table["k"]), key=lambda k: (not k.isdigit(), int(k) if k.isdigit() else 0, k))


def _against_k(table: pl.DataFrame, first: str, second: str, noise: str) -> alt.LayerChart:
    pairs = [pair for pair in (pair_label(first, second), pair_label(noise, second)) if pair in table["series"]]
    wrapped = "split(datum.label, ' ')"  # "mean length" in two lines
    plain = alt.Axis(
        title="k", labelAngle=0, labelFontSize=10, domain=False, ticks=False, grid=False, labelExpr=wrapped
    )
    x = alt.X("k:N", sort=_sizes(table), axis=plain)
    y = alt.Y("mean:Q", scale=alt.Scale(domain=[-1, 1]), axis=alt.Axis(title="mean", values=TICKS, format="~g"))
    base = alt.Chart().encode(x=x)
    beside = base.encode(xOffset=alt.XOffset("series:N", sort=pairs, scale=alt.Scale(paddingOuter=0.45)))
    colour, shape = series("series", pairs)
    chance = beside.mark_tick(style="mark", orient="horizontal", thickness=1.5, width=12, opacity=1)
    number = base.transform_filter(alt.datum.series == pairs[0]).mark_text(style="note", baseline="bottom")
    layers = [
        beside.mark_rule(strokeWidth=2, clip=True).encode(y="low:Q", y2="high:Q", color=colour),
        beside.mark_point(filled=True, size=46, opacity=1).encode(y=y, color=colour, shape=shape),
        chance.encode(y="chance:Q"),
        number.encode(y=alt.value(-6), text=alt.Text("above:Q", format="+.2f")),
    ]
    return alt.LayerChart(layer=layers)
