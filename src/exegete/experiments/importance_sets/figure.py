"""Importance sets: boxes of the fraction removed before the first flip, by scheme (Serrano & Smith 2019, figure 5).

Left all texts, those that never flip at 1; right only those that flip, as the paper draws them. The right side has
other texts for every scheme: compare schemes on the left.
"""

import altair as alt
import polars as pl

from exegete.experiments.common.depth import at_readout
from exegete.experiments.importance_sets.section import LABELS
from exegete.report.panels import WIDTH, grid, in_order, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, figure

COLOURS = dict(zip(LABELS.values(), (PALETTE[0], PALETTE[1], PALETTE[2], NEUTRAL, PALETTE[3]), strict=True))
CENSORED, EXCLUDED = "all texts (never flipped: 1)", "texts that flip, as published"


def quartiles(rows: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, texts, scheme, n, low, q1, median, q3, high, mean."""
    kept = at_readout(rows).filter(pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    named = with_panel(kept)
    both = [
        named.with_columns(texts=pl.lit(CENSORED), fraction="value"),
        named.filter("flips").with_columns(texts=pl.lit(EXCLUDED), fraction="first"),
    ]
    found = pl.concat(both).group_by("panel", "texts", "scheme", maintain_order=True).agg(*_box(pl.col("fraction")))
    every = named.select("panel", "scheme").unique(maintain_order=True)
    grid = every.join(pl.DataFrame({"texts": [CENSORED, EXCLUDED]}), how="cross")  # without gaps the panels stay put
    full = grid.join(found, on=["panel", "texts", "scheme"], how="left", maintain_order="left")
    return full.with_columns(pl.col("scheme").replace_strict(LABELS), pl.col("n").fill_null(0))


@figure(quartiles, "no text has more than one key")
def boxes(table: pl.DataFrame) -> alt.FacetChart:
    """Boxes of the fraction of keys removed before the decision first flips, one per ranking scheme, with texts that
    never flip at 1 and without them; a row of panels per task and model.
    """
    drawn = _boxes(table).properties(width=(WIDTH - 230) // 2 - 50, height=alt.Step(24))
    faceted = grid(drawn, table, "texts", spacing={"row": 24, "column": 56}, order=[CENSORED, EXCLUDED])
    read = "Box: quartiles; line: median; dot: mean; whiskers: the last text within 1.5 box widths. Right: n texts."
    return faceted.properties(title=read)


def _box(value: pl.Expr) -> list[pl.Expr]:
    q1, q3 = value.quantile(0.25, "linear"), value.quantile(0.75, "linear")
    reach = 1.5 * (q3 - q1)
    return [
        pl.len().alias("n"),
        value.filter(value >= q1 - reach).min().alias("low"),
        q1.alias("q1"),
        value.median().alias("median"),
        q3.alias("q3"),
        value.filter(value <= q3 + reach).max().alias("high"),
        value.mean().alias("mean"),
    ]


def _boxes(table: pl.DataFrame) -> alt.LayerChart:
    order = in_order(table["scheme"])
    colour = alt.Color("scheme:N", scale=alt.Scale(domain=order, range=[COLOURS[n] for n in order]), legend=None)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=False, labelPadding=8)
    base = alt.Chart().encode(y=alt.Y("scheme:N", sort=order, axis=plain))
    axis = alt.Axis(title="fraction of keys removed", values=[0, 0.2, 0.4, 0.6, 0.8, 1], format="~g")
    scale = alt.Scale(domain=[0, 1], nice=False)
    number = alt.Text("n:Q", format=",")
    return alt.LayerChart(
        layer=[
            base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", color=colour),
            base.mark_bar(size=13, opacity=0.45).encode(x=alt.X("q1:Q", scale=scale), x2="q3:Q", color=colour),
            base.mark_tick(style="mark", height=13, thickness=2).encode(x=alt.X("median:Q", scale=scale)),
            base.mark_point(style="mark", filled=True, size=22, opacity=1).encode(x=alt.X("mean:Q", scale=scale)),
            base.mark_text(style="note", align="left", dx=6).encode(x=alt.XDatum(1, scale=scale), text=number),
        ]
    )
