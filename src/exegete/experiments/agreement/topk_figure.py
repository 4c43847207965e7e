"""Top-k: which coefficient tells attention from noise? (Jain & Wallace 2019, Neely & Schouten 2020, and its repairs)

The legacy coefficient gives unrelated lists about +0.8, so "attention agrees with gradients at +0.8" says nothing.
Beside every mean of attention stand that of random scores and the chance level: where they meet, it is blind.
"""

import altair as alt
import polars as pl

from exegete.page.labels import importance_label, measure_label, pair_label, size_label
from exegete.page.panels import NOISE, TICKS, WIDTH, columns_of, in_order, rows_of, series, with_panel
from exegete.page.theme import inline, nothing, themed

MEASURES = ("legacy", "fagin", "bucket")


def topk(
    summary: pl.DataFrame, first: str = "attention", second: str = "gradient", noise: str = NOISE
) -> alt.Chart | alt.FacetChart:
    """Means with intervals against k, a column per coefficient, a row per model; above, attention minus its chance."""
    table = levels(summary, first, second, noise)
    if table.is_empty():
        return nothing(f"no top-k coefficient of {pair_label(first, second)}")
    measures, panels = in_order(table["measure"]), in_order(table["panel"])
    drawn = _panel(table, first, second, noise).properties(width=(WIDTH - 80) // len(measures) - 16, height=150)
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


def levels(
    summary: pl.DataFrame, first: str = "attention", second: str = "gradient", noise: str = NOISE
) -> pl.DataFrame:
    """What is drawn: panel, measure, k, series (the pair), mean, low, high, chance, and `above`: mean minus chance.

    Noise has no ties, sparse attention has many, and ties alone can lift a coefficient: a pair is held against its own
    chance.
    """
    kept = summary.filter(
        pl.col("class") == "all", pl.col("measure").is_in(MEASURES), pl.col("first").is_in([first, noise]),
        pl.col("second") == second, pl.col("mean").is_not_null(),
    )  # fmt: skip
    if kept.filter(pl.col("first") == first).is_empty():
        return pl.DataFrame()
    named = with_panel(kept).with_columns(
        series=pl.col("first").replace_strict({name: pair_label(name, second) for name in (first, noise)}),
        measure=pl.col("measure").replace_strict({name: measure_label(name) for name in MEASURES}),
        k=pl.col("k").map_elements(size_label, return_dtype=pl.String),
        above=pl.col("mean") - pl.col("chance"),
        order=pl.col("measure").replace_strict({name: place for place, name in enumerate(MEASURES)}),
    )
    return named.sort("order", maintain_order=True).select(
        "panel", "measure", "k", "series", "mean", "low", "high", "chance", "above"
    )


def _sizes(table: pl.DataFrame) -> list[str]:
    """k in order: numbers by size, then rules."""
    return sorted(in_order(table["k"]), key=lambda k: (not k.isdigit(), int(k) if k.isdigit() else 0, k))


def _panel(table: pl.DataFrame, first: str, second: str, noise: str) -> alt.LayerChart:
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
