"""Knockout: what cutting the edges to a word costs, over windows of layers (Geva et al. 2023, figure 2)."""

import altair as alt
import polars as pl

from exegete.report.panels import WIDTH, grid, in_order, series, with_panel
from exegete.report.theme import figure

SOURCES = {"all": "cut for every token", "readout": "cut for the token that is read"}
WORDS = {"strongest": "the strongest word", "others": "other words"}


def knockout_points(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, words, source, window, its middle, mean, low, high, and `whole`: cut at all sites."""
    whole = summary.filter(pl.col("first").is_null()).select("task", "model", "split", "words", whole="mean")
    kept = summary.filter(pl.col("first").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    joined = kept.join(whole, on=["task", "model", "split", "words"], how="left", maintain_order="left")
    order = pl.col("words").replace_strict({name: place for place, name in enumerate(WORDS)})
    named = with_panel(joined.sort(order, maintain_order=True))
    return named.select(
        "panel", pl.col("words").replace_strict(WORDS), pl.col("source").replace_strict(SOURCES),
        "first", "last", "of", "mean", "low", "high", "whole",
        middle=(pl.col("first") + pl.col("last")) / 2,
    )  # fmt: skip


@figure(knockout_points, "no edge was cut")
def windows(table: pl.DataFrame) -> alt.FacetChart:
    """Log-odds lost with the edges to a word cut in a window of layers, by the middle of the window, a line per
    source, a column for the strongest word of a text and one for the others.
    """
    last = int(table["of"].to_numpy().max()) - 1
    size = int((table["last"] - table["first"]).to_numpy().max()) + 1
    title = f"middle of {size} layers" if size > 1 else "layer"
    axis = alt.Axis(title=title, values=list(range(last + 1)), format="d", grid=False)
    x = alt.X("middle:Q", scale=alt.Scale(domain=[0, max(1, last)], nice=False, padding=8), axis=axis)
    ends = [value for name in ("mean", "low", "high") for value in table[name].drop_nulls()]
    scale = alt.Scale(domain=[min(0.0, *ends), max(0.0, *ends) * 1.05 or 1.0], nice=False)
    ys = {n: alt.Y(f"{n}:Q", scale=scale, axis=alt.Axis(title="log-odds lost", tickCount=5)) for n in ("mean", "low")}
    colour, shape = series("source", in_order(table["source"]))
    base = alt.Chart().encode(x=x)
    drawn = alt.LayerChart(
        layer=[
            alt.Chart().mark_rule(style="chance", strokeWidth=0.7).encode(y=alt.datum(0)),
            base.mark_area(opacity=0.15).encode(y=ys["low"], y2="high:Q", color=colour),
            base.mark_line(strokeWidth=1.8).encode(y=ys["mean"], color=colour),
            base.mark_point(filled=True, size=44, opacity=1).encode(y=ys["mean"], color=colour, shape=shape),
        ]
    ).properties(width=(WIDTH - 120) // 2 - 20, height=200)
    whole = ", ".join(f"{words} {mean:.2f}" for words, mean in _whole(table))
    read = ["Means over texts with 95 % intervals; above 0: a part of what cutting the word at all sites costs."]
    return grid(drawn, table, "words").properties(title=[*read, f"Cut at all sites: {whole}."] if whole else read)


def _whole(table: pl.DataFrame) -> list[tuple[str, float]]:
    """The loss with a word cut at all sites, where one model is drawn."""
    if table["panel"].n_unique() > 1:
        return []
    return [(w, m) for w, m in table.select("words", "whole").unique(maintain_order=True).iter_rows() if m is not None]
