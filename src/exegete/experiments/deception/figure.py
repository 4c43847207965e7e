"""Deception: how much attention planted words get, and who finds them in an honest and in a deceptive model."""

import altair as alt
import polars as pl

from exegete.report.labels import importance_labels
from exegete.report.panels import WIDTH, grid, in_order, series, with_panel
from exegete.report.theme import figure

HONEST = "honest"
COLUMNS = {
    "mass": "attention and accuracy", "accuracy": "attention and accuracy", "precision_at_k": "precision at k",
}  # fmt: skip
LINES = {"mass": "weight on planted words", "accuracy": "accuracy"}


def deception_lines(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, column, line (method or measure), who, mean, low, high, chance."""
    kept = summary.filter(pl.col("mean").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    methods = importance_labels(kept.filter(pl.col("measure") == "precision_at_k")["method"])
    named = [
        (LINES.get(measure) or methods[method], _whose(lam, learnt))
        for measure, method, lam, learnt in kept.select("measure", "method", "lam", "learnt").iter_rows()
    ]
    said = with_panel(kept).with_columns(
        pl.Series("line", [line for line, _ in named], dtype=pl.String),
        pl.Series("whose", [who for _, who in named], dtype=pl.String),
        column=pl.col("measure").replace_strict(COLUMNS),
    )
    return said.select("panel", "column", "line", "mean", "low", "high", "chance", who="whose")


@figure(deception_lines, "no text holds planted words")
def deception(table: pl.DataFrame) -> alt.FacetChart:
    """Attention on planted words, accuracy, and precision at k of methods at finding them, for a model and for the same
    one trained to attend elsewhere.
    """
    drawn = _layers(table).properties(width=(WIDTH - 220) // 2 - 24, height=alt.Step(12))
    faceted: alt.FacetChart = grid(drawn, table, "column", spacing=30).resolve_scale(y="independent")
    read = "Means over test texts with 95 % intervals; precision where the model obeys the planted words. Tick: chance."
    return faceted.properties(title=read)


def _whose(lam: float | None, learnt: bool) -> str:
    """A model, and whether anything follows from it.

    >>> _whose(None, True), _whose(1.0, False)
    ('honest', 'deceptive, λ = 1 (not learnt)')
    """
    return (HONEST if lam is None else f"deceptive, λ = {lam:g}") + ("" if learnt else " (not learnt)")


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    whose = in_order(table["who"])
    colour, shape = series("who", whose)
    plain = alt.Axis(title=None, domain=False, ticks=False, grid=True, labelPadding=8)
    axis = alt.Axis(title=None, values=[0, 0.5, 1], format="~g", grid=False)
    x = alt.X("mean:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    apart = alt.YOffset("who:N", sort=whose, scale=alt.Scale(paddingOuter=0.3))
    base = alt.Chart().encode(y=alt.Y("line:N", sort=in_order(table["line"]), axis=plain), yOffset=apart)
    layers = [
        base.mark_tick(style="chance", height=8, thickness=1.2, opacity=0.7).encode(x=alt.X("chance:Q")),
        base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=48, opacity=1).encode(x=x, color=colour, shape=shape),
    ]
    return alt.LayerChart(layer=layers)
