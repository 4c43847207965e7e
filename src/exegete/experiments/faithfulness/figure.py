"""Leaderboard: which method finds the words that matter, and does the order hold if words are removed another way?

A method that scores words by erasing them has an advantage where the evaluation erases alike: its dots are hollow.
"""

from collections.abc import Mapping
from typing import Literal

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.report.families import ATTENTION, COLOURS, FAMILIES, RANDOM, family
from exegete.report.labels import importance_labels, measure_label
from exegete.report.panels import WIDTH, grid, in_lines, in_order, with_panel
from exegete.report.theme import NEUTRAL, inline, nothing, themed

MEASURES = {"comprehensiveness": "comprehensiveness", "sufficiency": "sufficiency", "flip": "words gone at flip"}
REMOVALS = {"delete": "deleted", "zero": "zeroed", "unknown": "made unknown", "blocked": "blocked"}
SHORT = REMOVALS | {"unknown": "unknown"}  # below an axis


def leaderboard(
    summary: pl.DataFrame, removal: str = "delete", erasing: Mapping[str, str | None] | None = None
) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per method, a column per measure, a row per model; rules at attention and random."""
    table = board(summary, removal, erasing or {})
    if table.is_empty():
        return nothing(f"no test text with words {REMOVALS.get(removal, removal)}")
    width = (WIDTH - 210) // table["measure"].n_unique() - 20
    faceted = grid(_dots(table).properties(width=width, height=alt.Step(17)), table, "measure")
    words = REMOVALS.get(removal, removal)
    read = (
        f"Means on test texts, words {words}, with 95 % intervals. Hollow: the method erases words in the same way. "
        "Rules: attention (solid), random (dashed)."
    )
    apart: alt.FacetChart = faceted.resolve_scale(x="independent").properties(title=read)
    sentence = (
        f"Means of faithfulness measures by method, with intervals, words {words}; a panel per measure and model."
    )
    return themed(apart, sentence, table)


def board(summary: pl.DataFrame, removal: str, erasing: Mapping[str, str | None]) -> pl.DataFrame:
    """What is drawn: panel, measure, method, family, shares, role, mean, low, high; best comprehensiveness first."""
    kept = _ranked(summary, tuple(MEASURES)).filter(pl.col("removal") == removal)
    if kept.is_empty():
        return pl.DataFrame()
    order = _best_first(kept)
    named = _named(kept, erasing).with_columns(
        measure=pl.concat_str(pl.col("measure").replace_strict(MEASURES), pl.lit(" ("), "better", pl.lit(" is good)")),
        column=pl.col("measure").replace_strict({name: i for i, name in enumerate(MEASURES)}),
        place=pl.col("method").replace_strict({name: i for i, name in enumerate(order)}),
    )
    columns = ["panel", "measure", "label", "family", "shares", "role", "mean", "low", "high"]
    return named.sort("column", "place", maintain_order=True).select(columns).rename({"label": "method"})


def removals(
    summary: pl.DataFrame, erasing: Mapping[str, str | None] | None = None, measure: str = "comprehensiveness"
) -> alt.Chart | alt.FacetChart:
    """A line per method through its rank under every removal: lines that cross are orders that don't survive."""
    table = removal_ranks(summary, erasing or {}, measure)
    if table.is_empty():
        return nothing(f"no test text has a defined {measure_label(measure)}")
    panels = in_order(table["panel"])
    count = min(len(panels), 2)
    size = {1: 320, 2: 130}[count]
    names = in_lines(panels, 40) if len(panels) > 1 else "''"
    header = alt.Header(title=None, labelAnchor="start", labelExpr=names)
    drawn = _lines(table).properties(width=size, height=17 * table["method"].n_unique())
    facet = alt.Facet("panel:N", sort=panels, header=header)
    read = f"Rank by {measure_label(measure)} on test texts. Hollow: the method erases words in the same way."
    return themed(
        drawn.facet(facet, columns=count, data=inline(table), spacing=24).properties(title=read),
        f"Ranks of methods by {measure_label(measure)} under each removal of words, a panel per model.",
        table,
    )


def removal_ranks(summary: pl.DataFrame, erasing: Mapping[str, str | None], measure: str) -> pl.DataFrame:
    """What is drawn: panel, removal, method, family, shares, rank (1 is best), mean."""
    kept = _ranked(summary, (measure,))
    if kept.is_empty():
        return pl.DataFrame()
    descending = kept["better"][0] == "high"
    rank = pl.col("mean").rank("ordinal", descending=descending).over("panel", "removal").cast(pl.Int64)
    named = _named(kept, erasing).with_columns(rank=rank, removal=pl.col("removal").replace(SHORT))
    return named.select("panel", "removal", "family", "shares", "rank", "mean", method="label")


def _ranked(summary: pl.DataFrame, measures: tuple[str, ...]) -> pl.DataFrame:
    """Test texts, words ranked by signed score."""
    signed = (pl.col("split") == "test") & (pl.col("ranking") == "signed")
    return summary.filter(signed, pl.col("measure").is_in(measures), pl.col("mean").is_not_null())


def _best_first(kept: pl.DataFrame) -> list[str]:
    """Methods by their comprehensiveness, averaged over panels."""
    first = kept.filter(pl.col("measure") == kept["measure"][0])
    means = first.group_by("method", maintain_order=True).agg(pl.col("mean").mean())
    best = means.sort("mean", descending=first["better"][0] == "high", maintain_order=True)["method"].to_list()
    return [*best, *(method for method in in_order(kept["method"]) if method not in best)]


def _named(kept: pl.DataFrame, erasing: Mapping[str, str | None]) -> pl.DataFrame:
    """Labels, families, which methods erase as the evaluation does, and which two are the controls."""
    methods, by = kept["method"].to_list(), kept["removal"].to_list()
    labels = importance_labels(methods)
    roles = {ATTENTION: ATTENTION, RANDOM: RANDOM}
    return with_panel(kept).with_columns(
        pl.Series("label", [labels[method] for method in methods], dtype=pl.String),
        pl.Series("family", [family(method) for method in methods], dtype=pl.String),
        pl.Series("shares", [erasing.get(m) == r for m, r in zip(methods, by, strict=True)], dtype=pl.Boolean),
        pl.Series("role", [roles.get(parse(method).name, "") for method in methods], dtype=pl.String),
    )


def _colour(table: pl.DataFrame) -> alt.Color:
    shown = [name for name in FAMILIES if name in set(table["family"])]
    scale = alt.Scale(domain=shown, range=[COLOURS[name] for name in shown])
    return alt.Color("family:N", scale=scale, legend=alt.Legend(symbolType="circle"))


def _hollow(base: alt.Chart, colour: alt.Color) -> list[alt.Chart]:
    """Rings for methods that erase as the evaluation does, on a ground that hides what is behind."""
    ring = base.transform_filter("datum.shares")
    return [
        ring.mark_point(filled=True, style="ground", size=54, opacity=1),
        ring.mark_point(strokeWidth=2, size=46, opacity=1).encode(color=colour),
    ]


def _dots(table: pl.DataFrame) -> alt.LayerChart:
    colour = _colour(table)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    base = alt.Chart().encode(y=alt.Y("method:N", sort=in_order(table["method"]), axis=plain))
    x = alt.X(
        "mean:Q",
        axis=alt.Axis(title=None, format="~g", tickCount=4, grid=False, labelFlush=False),
        scale=alt.Scale(zero=False),
    )
    rule = alt.Chart().encode(x=x)
    layers = [
        rule.transform_filter(alt.datum.role == RANDOM).mark_rule(strokeDash=[4, 3], color=NEUTRAL),
        rule.transform_filter(alt.datum.role == ATTENTION).mark_rule(color=COLOURS["attention"], opacity=0.7),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        base.transform_filter("!datum.shares").mark_point(filled=True, size=58, opacity=1).encode(x=x, color=colour),
        *_hollow(base.encode(x=x), colour),
    ]
    return alt.LayerChart(layer=layers)


def _lines(table: pl.DataFrame) -> alt.LayerChart:
    colour = _colour(table)
    shown = in_order(table["removal"])
    axis = alt.Axis(title=None, labelAngle=0, domain=False, ticks=False, grid=True)
    x = alt.X("removal:N", sort=shown, axis=axis, scale=alt.Scale(type="point", padding=0.1))
    y = alt.Y("rank:Q", scale=alt.Scale(reverse=True, nice=False, zero=False, padding=8), axis=None)
    base = alt.Chart().encode(x=x, y=y)
    ends: tuple[tuple[str, Literal["left", "right"], int], ...] = ((shown[0], "right", -10), (shown[-1], "left", 10))
    names = [
        base.transform_filter(alt.datum.removal == end).mark_text(align=side, dx=dx, style="note", fontSize=11)
        for end, side, dx in ends
    ]
    layers = [
        base.mark_line(strokeWidth=1.8, opacity=0.8).encode(color=colour, detail="method:N"),
        base.transform_filter("!datum.shares").mark_point(filled=True, size=60, opacity=1).encode(color=colour),
        *_hollow(base, colour),
        *(name.encode(text="method:N") for name in names),
    ]
    return alt.LayerChart(layer=layers)
