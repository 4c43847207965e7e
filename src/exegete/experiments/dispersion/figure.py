"""Dispersion: attention against words and against states, and how evenly importance spreads (Meister et al. 2021).

The sweep (figure 3): what moves as sparsegen's λ makes attention sparser? Its axis is logarithmic in both directions
from 0, as λ goes from −∞ (uniform) to 1 (one word). Raw τ-b falls with λ for no other reason than ties; beside it stand
its share of what they allow, and τ-b among the words that have weight.
"""

from collections.abc import Mapping

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.report.labels import name_columns, task_labels
from exegete.report.panels import WIDTH, grid, in_order, rows_of, series
from exegete.report.theme import DASHES, PALETTE, SHAPES, figure, inline, nothing, themed

STATES = ("gradient_states", "leave_one_out_states")
METHODS = ("gradient", "leave-one-out")
OF = ("words", "hidden states")
ENTROPIES = {
    "attention": "attention",
    "gradient_inputs": "gradient, words for the output",
    "leave_one_out_inputs": "leave-one-out, words for the output",
    "gradient_on_states": "gradient, words for a state",
}
QUANTILES = {"low": 0.05, "quarter": 0.25, "median": 0.5, "three_quarters": 0.75, "high": 0.95}


def correlation(summary: pl.DataFrame, states: tuple[str, str] = STATES) -> alt.Chart | alt.FacetChart:
    """Figures 1 and 4: τ-b of attention with words and with states, a line per model, a column per way to measure."""
    table = dispersion_coefficients(summary, states)
    if table.is_empty():
        return nothing("no text has a defined τ of attention with another importance")
    drawn = _dots(table).properties(width=(WIDTH - 150) // len(METHODS) - 20, height=alt.Step(14))
    faceted = grid(drawn, table, "method", "task", order=METHODS)
    read = "Dots: mean τ-b with 95 % intervals. Grey bars: the room that ties leave τ-b. Line at 0: unrelated rankings."
    return themed(
        faceted.properties(title=read),
        "τ-b of attention with the importance of words and with that of hidden states, by model, gradient and "
        "leave-one-out side by side.",
        table,
    )


def dispersion_coefficients(summary: pl.DataFrame, states: tuple[str, str] = STATES) -> pl.DataFrame:
    """What is drawn: task, model, method, of (words or states), mean, low, high, maximum; softmax first."""
    pairs = {
        f"tau_{pair}": (method, of)
        for of, found in zip(OF, (("gradient_inputs", "leave_one_out_inputs"), states), strict=True)
        for method, pair in zip(METHODS, found, strict=True)
    }
    kept = summary.filter(pl.col("measure").is_in(list(pairs)), pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    ceiling = summary.filter(pl.col("measure").str.starts_with("maximum_")).select(
        "task", "model", pl.col("measure").str.replace("maximum_", "tau_"), maximum="mean"
    )
    said = {
        place: pl.col("measure").replace_strict({m: p[i] for m, p in pairs.items()}) for i, place in enumerate(_SAID)
    }
    joined = kept.join(ceiling, on=["task", "model", "measure"], how="left", maintain_order="left").with_columns(**said)
    return name_columns(by_density(joined)).select("task", "model", *_SAID, "mean", "low", "high", "maximum")


_SAID = ("method", "of")
_CELL = ["task", "model", "projection", "lam"]


def by_density(frame: pl.DataFrame) -> pl.DataFrame:
    """Dense projections first: softmax, others, then sparsegen and sparsemax by λ."""
    dense = pl.when(pl.col("projection") == "softmax").then(0).when(pl.col("lam").is_null()).then(1).otherwise(2)
    return frame.sort(dense, "lam", maintain_order=True)


def _dots(table: pl.DataFrame) -> alt.LayerChart:
    lowest = min(0.0, *table["low"].drop_nulls(), *table["mean"])
    axis = alt.Axis(title="mean τ-b with attention", format="~g", tickCount=5)
    x = alt.X("mean:Q", scale=alt.Scale(domain=[lowest, 1], nice=lowest < 0), axis=axis)
    plain = alt.Axis(title=None, domain=False, ticks=False)
    base = alt.Chart().encode(
        y=alt.Y("model:N", sort=in_order(table["model"]), axis=plain, scale=alt.Scale(paddingInner=0.3)),
        yOffset=alt.YOffset("of:N", sort=list(OF)),
    )
    colour = alt.Color("of:N", sort=list(OF), scale=alt.Scale(domain=list(OF), range=list(PALETTE[:2])))
    shape = alt.Shape("of:N", sort=list(OF), scale=alt.Scale(domain=list(OF), range=list(SHAPES[:2])))
    room = base.transform_calculate(zero="0")
    layers = [
        room.mark_bar(style="room", height=9).encode(x=alt.X("maximum:Q"), x2="zero:Q"),
        room.mark_rule(style="chance", opacity=0.5).encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=48, opacity=1).encode(x=x, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)


def _headed(field: str, order: list[str]) -> alt.Column:
    wrapped = "split(datum.label, ', ')"
    return alt.Column(f"{field}:N", sort=order, header=alt.Header(title=None, labelPadding=8, labelExpr=wrapped))


def spreads(rows: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: task, model, kind, quantiles, n."""
    found = [f"entropy_{name}" for name in ENTROPIES]
    long = rows.unpivot(on=found, index=_CELL, variable_name="kind", value_name="value").drop_nulls("value")
    if long.is_empty():
        return pl.DataFrame()
    table = long.group_by(*_CELL, "kind", maintain_order=True).agg(
        *(pl.col("value").quantile(q, "linear").alias(name) for name, q in QUANTILES.items()), pl.len().alias("n")
    )
    kinds = {f"entropy_{name}": label for name, label in ENTROPIES.items()}
    ordered = name_columns(by_density(table)).with_columns(pl.col("kind").replace_strict(kinds))
    place = pl.col("kind").replace_strict({label: i for i, label in enumerate(ENTROPIES.values())})
    return ordered.sort(place, maintain_order=True).select("task", "model", "kind", *QUANTILES, "n")


@figure(spreads, "no text has two words or more")
def entropy(table: pl.DataFrame) -> alt.FacetChart:
    """Normalised entropy of attention and of importances over the words of a text, its spread over texts, by model."""
    tasks, kinds = in_order(table["task"]), in_order(table["kind"])
    row = rows_of("task", tasks) if len(tasks) > 1 else alt.Undefined
    drawn = _boxes(table).properties(width=(WIDTH - 150) // 2 - 20, height=alt.Step(16))
    if len(tasks) > 1:
        drawn = drawn.properties(width=(WIDTH - 150) // len(kinds) - 20)
        faceted = drawn.facet(row=row, column=_headed("kind", kinds), data=inline(table), spacing=24)
    else:
        facet = alt.Facet("kind:N", sort=kinds, header=alt.Header(title=None, labelPadding=8))
        faceted = drawn.facet(facet, columns=2, data=inline(table), spacing=24)
    read = "Over texts: median, middle half, and the middle 90 %. At 1 all words are equally important."
    return faceted.properties(title=read)


def _boxes(table: pl.DataFrame) -> alt.LayerChart:
    axis = alt.Axis(title="normalised entropy", values=[0, 0.5, 1], format="~g")
    scale = alt.Scale(domain=[0, 1], nice=False)
    plain = alt.Axis(title=None, domain=False, ticks=False)
    base = alt.Chart().encode(y=alt.Y("model:N", sort=in_order(table["model"]), axis=plain))
    whisker = base.mark_rule(strokeWidth=1.5, color=PALETTE[0])
    box = base.mark_bar(height=8, color=PALETTE[0], opacity=0.55)
    layers = [
        whisker.encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"),
        box.encode(x=alt.X("quarter:Q", scale=scale, axis=axis), x2="three_quarters:Q"),
        base.mark_tick(style="mark", thickness=2, height=12, opacity=1).encode(x=alt.X("median:Q", scale=scale)),
    ]
    return alt.LayerChart(layer=layers)


LEAST = 3
COEFFICIENTS = {"tau": "τ-b", "corrected": "τ-b / its maximum", "inside": "τ-b among words with weight"}
CEILING = "maximum"


def swept(summary: pl.DataFrame) -> pl.DataFrame:
    """Only models on the dial of λ, of families that have three of its values or more on a task; λ ascending."""
    if summary.is_empty():
        return summary
    kept = summary.filter(pl.col("lam").is_not_null(), pl.col("mean").is_not_null())
    enough = pl.col("lam").n_unique().over("task", "family") >= LEAST
    return kept.filter(enough).sort("lam", maintain_order=True)


def correlation_by_lambda(summary: pl.DataFrame, states: tuple[str, str] = STATES) -> alt.Chart | alt.FacetChart:
    """Figure 3: τ-b of attention with every importance against λ; raw, as a share of what ties allow, without ties."""
    table = dispersion_lines(summary, _series(states), COEFFICIENTS | {CEILING: COEFFICIENTS["tau"]})
    if table.is_empty():
        return nothing("no model was trained with three values of λ")
    read = "Means with 95 % intervals; larger λ is sparser. Thin dashed: the largest τ-b that ties allow with words."
    return _figure(table, list(COEFFICIENTS.values()), "mean τ-b with attention", [-1, 1], read)


def entropy_by_lambda(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Normalised entropy of attention and of importances against λ."""
    series = dict(zip(ENTROPIES, ENTROPIES.values(), strict=True))
    table = dispersion_lines(summary, series, {"entropy": "normalised entropy"})
    if table.is_empty():
        return nothing("no model was trained with three values of λ")
    read = "Means with 95 % intervals; larger λ is sparser. At 1 all words are equally important."
    return _figure(table, ["normalised entropy"], "mean normalised entropy", [0, 1], read)


def _series(states: tuple[str, str]) -> dict[str, str]:
    gradient, removal = states
    return {
        "gradient_inputs": "gradient, words",
        "leave_one_out_inputs": "leave-one-out, words",
        gradient: "gradient, states",
        removal: "leave-one-out, states",
    }


def dispersion_lines(summary: pl.DataFrame, series: Mapping[str, str], columns: Mapping[str, str]) -> pl.DataFrame:
    """What is drawn: panel, column, kind (mean or ceiling), series, lam, mean, low, high."""
    kept = swept(summary)
    names = {f"{c}_{s}": (column, label, c) for c, column in columns.items() for s, label in series.items()}
    kept = kept.filter(pl.col("measure").is_in(list(names)))
    if kept.is_empty():
        return pl.DataFrame()
    told = {"column": 0, "series": 1, "kind": 2}
    said = {name: pl.col("measure").replace_strict({m: t[i] for m, t in names.items()}) for name, i in told.items()}
    named = kept.with_columns(**said, panel=_panels(kept))
    kinds = pl.col("kind") == CEILING
    first = pl.col("series") == next(iter(series.values()))
    drawn = named.filter(~kinds | first).with_columns(
        kind=pl.when(kinds).then(pl.lit(CEILING)).otherwise(pl.lit("mean"))
    )
    return drawn.select("panel", "column", "kind", "series", "lam", "mean", "low", "high")


def _panels(frame: pl.DataFrame) -> pl.Series:
    """Task, and family where there are several."""
    tasks, families = task_labels(frame["task"]), frame["family"].unique().to_list()
    of = {family: f" · {_family(family)}" if len(families) > 1 else "" for family in families}
    return pl.Series([tasks[task] + of[family] for task, family in frame.select("task", "family").iter_rows()])


def _family(spec: str) -> str:
    """A family in words.

    >>> _family("bilstm:attention=dot,vectors=glove")
    'bilstm, attention=dot, vectors=glove'
    """
    name, settings = parse(spec)
    return ", ".join([name, *(f"{key}={value}" for key, value in settings.items())])


def _figure(table: pl.DataFrame, columns: list[str], title: str, domain: list[float], read: str) -> alt.FacetChart:
    width = min(460, (WIDTH - 80) // len(columns) - 20)
    drawn = _layers(table, title, domain).properties(width=width, height=180)
    faceted = grid(drawn, table, "column", order=columns).properties(title=read)
    return themed(faceted, f"{title} against sparsegen's λ, a line per importance, a row per task and model.", table)


def _layers(table: pl.DataFrame, title: str, domain: list[float]) -> alt.LayerChart:
    lams = sorted(table["lam"].unique().to_list())
    plain = "replace(datum.value + '', '-', '−')"  # vega would write −1e+1
    axis = alt.Axis(title="λ, sparser to the right", values=_ticks(lams), labelExpr=plain, grid=False)
    x = alt.X("lam:Q", scale=alt.Scale(type="symlog", constant=0.3, domain=[lams[0], 1], nice=False), axis=axis)
    lowest = min(0.0, *table["mean"], *table["low"].drop_nulls()) if domain[0] < 0 else 0.0
    scale = alt.Scale(domain=[lowest, domain[1]], nice=lowest < 0)
    y, low = (
        alt.Y(f"{f}:Q", scale=scale, axis=alt.Axis(title=title, format="~g", tickCount=5)) for f in ("mean", "low")
    )
    colour, shape = series("series", in_order(table["series"]))
    base = alt.Chart().encode(x=x)
    means = base.transform_filter(alt.datum.kind == "mean")
    ceiling = base.transform_filter(alt.datum.kind == CEILING)
    layers = [
        means.mark_area(opacity=0.15).encode(y=low, y2="high:Q", color=colour),
        ceiling.mark_line(style="mark", strokeWidth=1, strokeDash=list(DASHES[1])).encode(y=y),
        means.mark_line(strokeWidth=1.8).encode(y=y, color=colour),
        means.mark_point(filled=True, size=36, opacity=1).encode(y=y, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)


def _ticks(lams: list[float]) -> list[float]:
    """Places that don't crowd, from the least λ to 1.

    >>> _ticks([-100.0, 0.0, 0.9])
    [-100, -10, -1, 0, 1]
    """
    powers = [place for place in (-10_000, -1000, -100, -10, -1) if place >= lams[0]]
    return [*powers, 0, 1]
