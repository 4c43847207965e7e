"""Sweep: what moves as sparsegen's λ makes attention sparser? (Meister et al. 2021, figure 3)

The axis of λ is logarithmic in both directions from 0, as λ goes from −∞ (uniform) to 1 (one word). Raw τ-b falls with
λ for no other reason than ties; beside it stand its share of what they allow, and τ-b
among the words that have weight.
"""

from collections.abc import Mapping

import altair as alt
import polars as pl

from exegete.base.names import parse
from exegete.experiments.dispersion.figure import ENTROPIES, STATES
from exegete.page.labels import task_labels
from exegete.page.panels import WIDTH, grid, in_order, series
from exegete.page.theme import DASHES, nothing, themed

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


def correlation(summary: pl.DataFrame, states: tuple[str, str] = STATES) -> alt.Chart | alt.FacetChart:
    """Figure 3: τ-b of attention with every importance against λ; raw, as a share of what ties allow, without ties."""
    table = lines(summary, _series(states), COEFFICIENTS | {CEILING: COEFFICIENTS["tau"]})
    if table.is_empty():
        return nothing("no model was trained with three values of λ")
    read = "Means with 95 % intervals; larger λ is sparser. Thin dashed: the largest τ-b that ties allow with words."
    return _figure(table, list(COEFFICIENTS.values()), "mean τ-b with attention", [-1, 1], read)


def entropy(summary: pl.DataFrame) -> alt.Chart | alt.FacetChart:
    """Normalised entropy of attention and of importances against λ."""
    series = dict(zip(ENTROPIES, ENTROPIES.values(), strict=True))
    table = lines(summary, series, {"entropy": "normalised entropy"})
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


def lines(summary: pl.DataFrame, series: Mapping[str, str], columns: Mapping[str, str]) -> pl.DataFrame:
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
