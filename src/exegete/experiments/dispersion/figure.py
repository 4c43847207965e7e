"""Dispersion: attention against words and against states, and how evenly importance spreads (Meister et al. 2021)."""

import altair as alt
import polars as pl

from exegete.page.panels import WIDTH, grid, in_order, named, rows_of
from exegete.page.theme import PALETTE, SHAPES, figure, inline, nothing, themed

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
    table = coefficients(summary, states)
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


def coefficients(summary: pl.DataFrame, states: tuple[str, str] = STATES) -> pl.DataFrame:
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
    return named(by_density(joined)).select("task", "model", *_SAID, "mean", "low", "high", "maximum")


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
    ordered = named(by_density(table)).with_columns(pl.col("kind").replace_strict(kinds))
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
