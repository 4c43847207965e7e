"""Calibration: what every test says where the truth is known, a panel per test, a bar per rung."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from exegete.page.panels import WIDTH, in_order
from exegete.page.theme import NEUTRAL, PALETTE, inline, nothing, themed

COLUMNS = 3
# From the bottom up. Colour says nothing alone: "cannot tell" is pale, and every part has the sign of its verdict.
SAID = {"holds": "holds", "cannot_tell": "cannot tell", "fails": "fails"}
SIGNS = {"holds": "✓", "cannot tell": "?", "fails": "✗"}
COLOURS = {"holds": PALETTE[2], "cannot tell": NEUTRAL, "fails": PALETTE[1]}
PALE = 0.3
LEAST = 0.12  # of a bar: a smaller part has no room for its sign


def calibration(frame: pl.DataFrame, order: Sequence[str] = ()) -> alt.Chart | alt.FacetChart:
    """Stacked bars: the share of audits with each verdict, by rung; an interval on the share that holds.

    `order` are tests, the best first; others follow as they come.
    """
    table = shares(frame, order)
    if table.is_empty():
        return nothing("no audit of a model whose truth is known")
    width = (WIDTH - 90) // COLUMNS - 24
    drawn = _layers(table).properties(width=width, height=96)
    header = alt.Header(title=None, labelPadding=8, labelExpr="split(datum.label, '\\n')")
    panels = alt.Facet("panel:N", sort=in_order(table["panel"]), header=header)
    faceted: alt.FacetChart = drawn.facet(facet=panels, columns=COLUMNS, data=inline(table), spacing=26)
    faceted = faceted.resolve_axis(x="independent")
    read = "Share of audits with each verdict. Rule and dot: the share that holds, with its 95 % interval."
    return themed(
        faceted.properties(title=read),
        "What every test of the audit says of models whose attention decides 0 to 100 % of the prediction, and of "
        "models that were never trained: the share of audits that say holds, cannot tell and fails, by test.",
        table.drop("panel", "below", "above", "middle", "sign"),
    )


def shares(frame: pl.DataFrame, order: Sequence[str] = ()) -> pl.DataFrame:
    """What is drawn: test, rung, n, verdict, part (its share), where the part lies, and the interval of what holds."""
    if frame.is_empty():
        return pl.DataFrame()
    tests = [*order, *(test for test in in_order(frame["test"]) if test not in order)]
    known = frame.filter(pl.col("test").is_in(tests)).with_columns(
        place=pl.col("test").replace_strict({test: place for place, test in enumerate(tests)})
    )
    keys = ["place", "test", "rung", "seeds", "n", "low", "high"]
    long = known.unpivot(list(SAID), index=keys, variable_name="verdict", value_name="count").with_columns(
        pl.col("verdict").replace_strict(SAID), part=pl.col("count") / pl.col("n"),
        level=pl.col("verdict").replace_strict({name: place for place, name in enumerate(SAID)}),
    )  # fmt: skip
    above = pl.col("part").cum_sum().over("test", "rung")
    stacked = long.sort("place", "level", maintain_order=True).with_columns(
        above=above, below=above - pl.col("part"), share=pl.col("part").first().over("test", "rung")
    )
    return stacked.with_columns(
        pl.col("test").str.replace_all("_", " "),
        middle=(pl.col("above") + pl.col("below")) / 2,
        sign=pl.when(pl.col("part") >= LEAST).then(pl.col("verdict").replace_strict(SIGNS)).otherwise(pl.lit("")),
        panel=_panel(),
    ).drop("level", "place")


def _panel() -> pl.Expr:
    """The test, and the range of its numbers of audits."""
    least, most = (getattr(pl.col("n"), end)().over("test").cast(pl.String) for end in ("min", "max"))
    several = pl.col("seeds").max().over("test")
    range_ = pl.when(least == most).then(least).otherwise(least + pl.lit("–") + most)
    seeds = pl.when(several > 1).then(pl.format(" of {} seeds", several)).otherwise(pl.lit(""))
    return pl.col("test").str.replace_all("_", " ") + pl.lit("\n") + range_ + pl.lit(" audits") + seeds


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    shown = list(SAID.values())
    scale = alt.Scale(domain=shown, range=[COLOURS[said] for said in shown])
    opacity = alt.condition("datum.verdict == 'cannot tell'", alt.value(PALE), alt.value(1))
    rungs = alt.Axis(title=None, labelAngle=-40, domain=False, ticks=False, grid=False)
    axis = alt.Axis(title="share of audits", values=[0, 0.5, 1], format="%")
    x = alt.X("rung:N", sort=in_order(table["rung"]), axis=rungs, scale=alt.Scale(paddingInner=0.25))
    y = alt.Y("below:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    colour = alt.Color("verdict:N", scale=scale, legend=alt.Legend(symbolType="square"))
    held = alt.Chart().transform_filter("datum.verdict == 'holds'").encode(x=x)
    layers = [
        alt.Chart().mark_bar().encode(x=x, y=y, y2="above:Q", color=colour, opacity=opacity),
        alt.Chart().mark_text(fontSize=10, style="mark", xOffset=-4).encode(x=x, y="middle:Q", text="sign:N"),
        held.mark_rule(style="mark", strokeWidth=1.4, xOffset=5).encode(y="low:Q", y2="high:Q"),
        held.mark_point(style="mark", filled=True, size=22, opacity=1, xOffset=5).encode(y="share:Q"),
    ]
    return alt.LayerChart(layer=layers)
