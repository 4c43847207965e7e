"""Multiverse: the mean coefficient of every specification, sorted, above the choices that made it.

A specification curve (Simonsohn, Simmons & Nelson 2020), and which choice the spread of its means belongs to.
"""

from textwrap import wrap
from typing import cast

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.report.labels import measure_label
from exegete.report.panels import WIDTH, grid, in_order, series, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, inline, nothing, themed

SIZES = {"input": "|e · ∂f/∂e|", "l1": "‖∂f/∂e‖₁", "l2": "‖∂f/∂e‖₂", "leave_one_out": "leave-one-out"}
DETACHED = {"false": "attention moves too", "true": "attention held fixed"}
TARGETS = {"logit": "of the logit", "probability": "of the probability", "loss": "of the loss"}
OVER_WORDS = {
    "tau": "τ-b, all words",
    "tau_corrected": "τ-b / its maximum",
    "tau_nonzeros": "τ-b, words with weight",
}
GROUPS = ("measure", "detach", "of", "coefficient")
CHOICES = {
    "importance": "gradient or leave-one-out, and how",
    "measure": "size of the gradient",
    "detach": "attention moves or not",
    "of": "logit, probability or loss",
    "coefficient": "coefficient",
    "seed": "seed",
    "together": "only in combination",
}
AMONG = {"all": "all specifications", "gradient": "gradients only"}
SCALES = {"coefficient": "as printed", "above_chance": "above chance"}
NAMES = 150  # room for the names of the choices
LINE = 13  # between two of them
KEY = pl.concat_str("importance", pl.lit(" · "), "coefficient")  # what tells specifications of a model apart


def curves(summary: pl.DataFrame, by_seed: pl.DataFrame | None = None) -> alt.Chart | alt.VConcatChart:
    """One curve per model of a task, each with its own order: means with intervals and chance; below, the choices."""
    table = specifications(summary)
    if table.is_empty():
        return nothing("no specification has a defined mean")
    seeds = _seeds(table, by_seed)
    panels = [_panel(table.filter(pl.col("panel") == name), seeds, name) for name in in_order(table["panel"])]
    read = (
        "Each column is one specification: the mean over texts with its 95 % interval (colour: what attention is "
        "compared with), the level of unrelated rankings (short line), and below it what was chosen."
    )
    few = "" if seeds.is_empty() else " Grey: single seeds."
    whole = alt.vconcat(*panels, spacing=26).properties(title=alt.TitleParams(wrap(read + few, 130), fontSize=11))
    return _themed(whole, "Mean agreement of attention under every choice, sorted, with intervals and chance.", table)


def _themed(chart: alt.VConcatChart, description: str, table: pl.DataFrame) -> alt.VConcatChart:
    """In its look; a concatenation takes the same properties as the charts that `themed` names."""
    drawn: object = themed(cast(alt.LayerChart, chart), description, table)
    return cast(alt.VConcatChart, drawn)


def specifications(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, place on the curve (1 is lowest), the choices in words, mean, low, high, chance, n."""
    kept = summary.filter(pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    coefficients = {name: coefficient_label(name) for name in in_order(kept["coefficient"])}
    named = with_panel(kept).with_columns(
        pl.col("measure").replace_strict(SIZES),
        pl.col("detach").replace_strict(DETACHED, default=None, return_dtype=pl.String),
        pl.col("of").replace_strict(TARGETS),
        pl.col("coefficient").replace_strict(coefficients),
        key=KEY,
        # What differs by rounding alone stays in the order of the choices.
        place=pl.col("mean").round(6).rank("ordinal").over("task", "model").cast(pl.Int64),
    )
    chosen = named.select("panel", "place", "key", *GROUPS, "mean", "low", "high", "chance", "n")
    return pl.concat([part.sort("place") for part in chosen.partition_by("panel", maintain_order=True)])


def coefficient_label(coefficient: str) -> str:
    """A coefficient in words.

    >>> coefficient_label("fagin:k=5"), coefficient_label("legacy:k=nonzeros"), coefficient_label("tau")
    ('Fagin, top 5', 'legacy, words with weight', 'τ-b, all words')
    """
    name, settings = parse(coefficient)
    if name in OVER_WORDS:
        return OVER_WORDS[name]
    over = "words with weight" if settings["k"] == "nonzeros" else f"top {settings['k']}"
    return f"{measure_label(name).split(' top')[0]}, {over}"


def _seeds(table: pl.DataFrame, by_seed: pl.DataFrame | None) -> pl.DataFrame:
    """The means of single seeds at their specification's place, where there are several."""
    if by_seed is None or by_seed["seed"].n_unique() < 2:
        return pl.DataFrame(schema={"panel": pl.String, "place": pl.Int64, "mean": pl.Float64})
    named = with_panel(by_seed).with_columns(key=KEY)
    return named.join(table.select("panel", "key", "place"), on=["panel", "key"]).select("panel", "place", "mean")


def _panel(table: pl.DataFrame, seeds: pl.DataFrame, name: str) -> alt.VConcatChart:
    """One model: its curve, and a small table of dots for every group of choices."""
    width = WIDTH - NAMES - 20
    x = alt.X("place:Q", scale=alt.Scale(domain=[0, table.height + 1], nice=False), axis=None)
    shown = [size for size in SIZES.values() if size in set(table["measure"])]
    colour = alt.Color("measure:N", scale=alt.Scale(domain=shown, range=list(PALETTE)), legend=None)
    top = _curve(table, seeds.filter(pl.col("panel") == name), x, colour).properties(width=width, height=150)
    below = [
        _dots(table, group, x, colour).properties(width=width) for group in GROUPS if table[group].drop_nulls().len()
    ]
    return alt.vconcat(top, *below, spacing=7, bounds="flush").properties(title=_heading(name))


def _heading(name: str) -> alt.TitleParams:
    return alt.TitleParams(name, fontSize=12, fontWeight="bold", anchor="start", offset=4)


def _curve(table: pl.DataFrame, seeds: pl.DataFrame, x: alt.X, colour: alt.Color) -> alt.LayerChart:
    lowest = min(0.0, *table["low"].drop_nulls(), *table["mean"], *table["chance"].drop_nulls())
    axis = alt.Axis(title="mean coefficient", tickCount=5, format="~g", minExtent=NAMES, maxExtent=NAMES, titleX=-40)
    y = alt.Y("mean:Q", scale=alt.Scale(domain=[lowest, 1], nice=False), axis=axis)
    step = (WIDTH - NAMES - 20) / (table.height + 1)
    base = alt.Chart(inline(table)).encode(x=x)
    zero = alt.Chart(inline(pl.DataFrame({"zero": [0]}))).mark_rule(style="chance", strokeWidth=0.7)
    return alt.LayerChart(
        layer=[
            zero.encode(y="zero:Q"),
            alt.Chart(inline(seeds)).mark_circle(color=NEUTRAL, size=5, opacity=0.8).encode(x=x, y=y),
            base.mark_rule(strokeWidth=min(2.0, step * 0.45)).encode(y="low:Q", y2="high:Q", color=colour),
            base.mark_circle(size=min(40.0, step * 4), opacity=1).encode(y=y, color=colour),
            base.mark_tick(style="mark", orient="horizontal", thickness=1.2, width=min(12.0, step), opacity=1).encode(
                y="chance:Q"
            ),
        ]
    )


def _dots(table: pl.DataFrame, group: str, x: alt.X, colour: alt.Color) -> alt.Chart:
    """A line per level of one choice, a dot where a specification has it."""
    levels = _levels(table, group)
    axis = alt.Axis(title=None, domain=False, ticks=False, grid=True, minExtent=NAMES, maxExtent=NAMES, labelPadding=8)
    y = alt.Y(f"{group}:N", sort=levels, axis=axis)
    size = min(22.0, 3.4 * (WIDTH - NAMES) / (table.height + 1))
    there = table.filter(pl.col(group).is_not_null()).select(*dict.fromkeys(("place", "measure", group)))
    dots: alt.Chart = alt.Chart(inline(there)).mark_circle(size=size, opacity=1).encode(x=x, y=y, color=colour)
    return dots.properties(height=LINE * len(levels))


def _levels(table: pl.DataFrame, group: str) -> list[str]:
    """The levels of a choice, in the order in which a reader looks for them."""
    there = set(table[group].drop_nulls())
    known = {"measure": SIZES, "detach": DETACHED, "of": TARGETS, "coefficient": OVER_WORDS}[group].values()
    return [*(level for level in known if level in there), *sorted(there - set(known))]


def shares(table: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Dots with intervals: a line per choice, a column per scale, a row per model and family of importances."""
    kept = shares_table(table)
    if kept.is_empty():
        return nothing("no choice has two levels, or a specification is undefined")
    scales = in_order(kept["scale"])
    domain = [side for side in AMONG.values() if side in set(kept["among"])]
    colour, shape = series("among", domain)
    axis = alt.Axis(title="share of the spread between specifications", format="%", values=[0, 0.25, 0.5, 0.75, 1])
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    base = alt.Chart().encode(
        y=alt.Y("choice:N", sort=[said for said in CHOICES.values() if said in set(kept["choice"])], axis=plain),
        yOffset=alt.YOffset("among:N", sort=domain),
    )
    drawn = alt.LayerChart(
        layer=[
            base.mark_rule(strokeWidth=2, clip=True).encode(x="low:Q", x2="high:Q", color=colour),
            base.mark_point(filled=True, size=46, opacity=1).encode(x=x, color=colour, shape=shape),
        ]
    ).properties(width=(WIDTH - 260) // len(scales) - 20, height=alt.Step(9))
    faceted = grid(drawn, kept, "scale", spacing=20)
    read = "How much of the variance of the specifications' means each choice explains, with 95 % intervals over texts."
    return themed(faceted.properties(title=read), "Shares of variance by choice.", kept)


def shares_table(table: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, scale, family, choice in words, share, low, high."""
    if table.is_empty():
        return pl.DataFrame()
    kept = table.filter(pl.col("share").is_not_null(), pl.col("among").is_in(list(AMONG)))
    if kept.is_empty():
        return pl.DataFrame()
    named = with_panel(kept).with_columns(
        pl.col("among").replace_strict(AMONG), pl.col("scale").replace_strict(SCALES),
        pl.col("choice").replace_strict(CHOICES),
    )  # fmt: skip
    return named.select("panel", "scale", "among", "choice", "share", "low", "high")
