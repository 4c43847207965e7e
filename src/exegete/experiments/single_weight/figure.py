"""Single weight: ΔJS against the difference of weights, and where it is negative (Serrano & Smith 2019, figures 3, 4).

Texts with a small difference are far more than others: of every tenth of the axis only some points are drawn, a keyed
choice. The histogram counts all texts.
"""

import altair as alt
import polars as pl
import torch

from exegete.base.noise import uniform
from exegete.report.panels import WIDTH, lines, with_panel
from exegete.report.theme import PALETTE, figure

POINTS = 150  # drawn of every tenth and panel
TENTHS = 10
BINS = 20
NEGATIVE = -1e-12  # below it ΔJS is negative and not rounding
AXIS = "difference of weights, highest − random other"


def single_weight_points(rows: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, difference, value."""
    kept = rows.filter(pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    chosen = uniform(0, torch.from_numpy(kept["example"].to_numpy().copy()), torch.tensor(kept["seed"].to_list()))
    tenth = (pl.col("difference") * TENTHS).floor().clip(0, TENTHS - 1)
    named = with_panel(kept).with_columns(pl.Series("lot", chosen.numpy()), tenth=tenth)
    few = named.filter(pl.col("lot").rank("ordinal").over("panel", "tenth") <= POINTS)
    return few.select("panel", pl.col("difference").round(4), pl.col("value").round_sig_figs(4))


@figure(single_weight_points, "no text has more than one key")
def scatter(table: pl.DataFrame) -> alt.FacetChart:
    """Change of the output without the highest weight less that without a random other one, against the difference of
    the two weights; one dot per text, a panel per task and model.
    """
    read = (
        f"One dot per text, at most {POINTS} of every tenth of the axis. Above the line, the highest weight matters "
        "more. Every panel has its own scale of ΔJS."
    )
    one = alt.Chart().transform_aggregate(texts="count()")  # one line, not one per text
    dots = alt.Chart().mark_circle(size=14, opacity=0.15, color=PALETTE[0])
    layers = alt.LayerChart(
        layer=[
            one.transform_calculate(zero="0").mark_rule(style="chance").encode(y="zero:Q"),
            dots.encode(x=_x(), y=alt.Y("value:Q", axis=alt.Axis(title="ΔJS", tickCount=5))),
        ]
    )
    return _panels(layers, table, 190).properties(title=read)


def counts(rows: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, low, high, negative (texts), n (all texts of the bin), note."""
    kept = rows.filter(pl.col("value").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    place = (pl.col("difference") * BINS).floor().cast(pl.Int64).clip(0, BINS - 1)
    named = with_panel(kept).with_columns(bin=place, below=pl.col("value") < NEGATIVE)
    found = named.group_by("panel", "bin").agg(negative=pl.col("below").sum(), n=pl.len())
    every = named.select(pl.col("panel").unique(maintain_order=True)).join(
        pl.DataFrame({"bin": range(BINS)}), how="cross", maintain_order="left_right"
    )
    full = every.join(found, on=["panel", "bin"], how="left", maintain_order="left").fill_null(0)
    percent = (100 * pl.col("negative").sum() / pl.col("n").sum()).over("panel").round(1).cast(pl.String)
    return full.select(
        "panel", "negative", "n", low=pl.col("bin") / BINS, high=(pl.col("bin") + 1) / BINS,
        note=pl.concat_str(percent, pl.lit(" % of texts")),
    )  # fmt: skip


@figure(counts, "no text has more than one key")
def negatives(table: pl.DataFrame) -> alt.FacetChart:
    """Histogram of the difference of weights over texts where removing the highest weight changes the output less than
    removing a random other one; a panel per task and model.
    """
    bars = alt.Chart().mark_bar(color=PALETTE[1], binSpacing=1)
    said = (
        alt.Chart()
        .transform_aggregate(groupby=["note"], bins="count()")
        .mark_text(style="note", align="right", baseline="bottom")
    )
    layers = alt.LayerChart(
        layer=[
            bars.encode(
                x=_x("low").bin("binned"), x2="high:Q", y=alt.Y("negative:Q", axis=alt.Axis(title="texts", tickCount=3))
            ),
            said.encode(x=alt.value(_width(table)), y=alt.value(-3), text="note:N"),
        ]
    )
    return _panels(layers, table, 90).properties(
        title="Texts with a negative ΔJS. Every panel has its own scale of texts."
    )


def _x(field: str = "difference") -> alt.X:
    axis = alt.Axis(title=AXIS, values=[0, 0.2, 0.4, 0.6, 0.8, 1], format="~g", grid=False)
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)


def _width(table: pl.DataFrame) -> int:
    return (WIDTH - 80) // _columns(table) - 40


def _columns(table: pl.DataFrame) -> int:
    panels = table["panel"].n_unique()
    return 2 if panels in (1, 2, 4) else 3


def _panels(layers: alt.LayerChart, table: pl.DataFrame, height: int) -> alt.FacetChart:
    width = _width(table)
    apart = lines(layers.properties(width=width, height=height), table, _columns(table), letters=width // 7)
    # One model's changes may be a thousandth of another's.
    own: alt.FacetChart = apart.resolve_scale(y="independent")
    return own
