"""Adversary training: how far attention gets, how much predictions change (Wiegreffe & Pinter 2019, section 4)."""

import math

import altair as alt
import polars as pl

from exegete.experiments.adversary_training.section import KINDS
from exegete.report.panels import WIDTH, lines, with_panel
from exegete.report.theme import NEUTRAL, PALETTE, SHAPES, figure
from exegete.report.violin import Axis, half_shapes, halves

COLOURS = (*PALETTE[:2], NEUTRAL, PALETTE[2])
TICKS = (0, 0.2, 0.4, 0.6)
SIDES = {"jsd": "adversary", "permuted_jsd": "adversary, permuted"}
AXIS = Axis("Jensen–Shannon divergence of the weights", math.log(2), TICKS)
NONE = "no text has two words"


def adversary_points(summary: pl.DataFrame) -> pl.DataFrame:
    """What is drawn: panel, kind, label (λ or ε), jsd and tvd with intervals; the points of a curve in order of λ."""
    kept = summary.filter(pl.col("jsd").is_not_null())
    if kept.is_empty():
        return pl.DataFrame()
    labels = [_label(lam, tolerance) for lam, tolerance in kept.select("lam", "tolerance").iter_rows()]
    named = with_panel(kept.with_columns(pl.Series("label", labels, dtype=pl.String))).with_columns(
        place=pl.col("kind").replace_strict({kind: i for i, kind in enumerate(KINDS)}),
        kind=pl.col("kind").replace_strict(KINDS),
    )
    numbers = [f"{name}{end}" for name in ("jsd", "tvd") for end in ("", "_low", "_high")]
    ordered = named.sort("panel", "place", "lam", maintain_order=True).select("panel", "kind", "lam", "label", *numbers)
    return pl.concat([_joined(part) for part in ordered.partition_by("panel", "kind", maintain_order=True)])


@figure(adversary_points, NONE)
def curve(table: pl.DataFrame) -> alt.FacetChart:
    """How far the attention of adversaries is from a model's own against how much their predictions change, over λ,
    beside other seeds and searched weights, a panel per model.
    """
    columns = min(table["panel"].n_unique(), 2)
    width = 520 if columns == 1 else (WIDTH - 60) // 2 - 30
    drawn = _layers(table).properties(width=width, height=240)
    read = (
        "Means over texts with 95 % intervals; labels are λ or, where searched, ε. To the right and low: easily faked."
    )
    return lines(drawn, table, columns, spacing=30).properties(title=read)


def _joined(points: pl.DataFrame) -> pl.DataFrame:
    """The points of one kind; those that lie on one another share the label of the first."""
    labels: list[str] = []
    first = 0  # the point whose label is being written
    for here, (label, x, y) in enumerate(points.select("label", "jsd", "tvd").iter_rows()):
        near = here > 0 and all(
            abs(value - points[name][first]) < reach for name, value, reach in (("jsd", x, 0.03), ("tvd", y, 0.01))
        )
        if near and label:
            labels[first] += f", {label.removeprefix('ε ')}"
        labels.append("" if near else label)
        first = first if near else here
    return points.with_columns(pl.Series("label", labels, dtype=pl.String))


def _label(lam: float | None, tolerance: float | None) -> str:
    """What is said beside a point.

    >>> _label(0.01, None), _label(None, 0.05), _label(None, None)
    ('0.01', 'ε 0.05', '')
    """
    return f"{lam:g}" if lam is not None else f"ε {tolerance:g}" if tolerance is not None else ""


def _layers(table: pl.DataFrame) -> alt.LayerChart:
    kinds = [kind for kind in KINDS.values() if kind in set(table["kind"])]
    place = {kind: i for i, kind in enumerate(KINDS.values())}
    colours = alt.Scale(domain=kinds, range=[COLOURS[place[kind]] for kind in kinds])
    forms = alt.Scale(domain=kinds, range=[SHAPES[place[kind]] for kind in kinds])
    colour, shape = alt.Color("kind:N", scale=colours), alt.Shape("kind:N", scale=forms)
    title_x, title_y = "JSD of the weights to the model's own", "TVD of predictions"
    span = alt.Scale(domain=[-0.03, math.log(2) + 0.02], nice=False)
    x = alt.X("jsd:Q", scale=span, axis=alt.Axis(title=title_x, values=list(TICKS), format="~g", grid=False))
    y = alt.Y("tvd:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=title_y, tickCount=5, format="~g"))
    base = alt.Chart()
    # Frozen adversaries jump from the base to far away: a line between would show what no λ gives.
    line = base.transform_filter(f"datum.kind == '{KINDS['unfrozen']}'").mark_line(strokeWidth=1.5, opacity=0.7)
    layers = [
        line.encode(x=x, y=y, color=colour, order="lam:Q"),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(x=alt.X("jsd_low:Q"), x2="jsd_high:Q", y=y, color=colour),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(x=x, y=alt.Y("tvd_low:Q"), y2="tvd_high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colour, shape=shape),
        base.mark_text(style="note", align="right", baseline="bottom", dx=-5, dy=-6).encode(x=x, y=y, text="label:N"),
    ]
    return alt.LayerChart(layer=layers)


def adversary_spread(rows: pl.DataFrame) -> pl.DataFrame:
    """What is drawn; unfrozen adversaries if there are any."""
    trained = rows.filter(pl.col("lam").is_not_null(), pl.col("jsd").is_not_null())
    unfrozen = trained.filter(pl.col("kind") == "unfrozen")
    kept = trained if unfrozen.is_empty() else unfrozen
    if kept.is_empty():
        return pl.DataFrame()
    return half_shapes(kept.filter(pl.col("lam") == kept["lam"].max()), SIDES, AXIS)


@figure(adversary_spread, NONE)
def violins(table: pl.DataFrame) -> alt.FacetChart:
    """Densities of the divergence between a model's attention and its adversary's, by bins of the largest weight,
    beside that after permuting the adversary's, a panel per model.
    """
    read = "Above a line: JSD to the adversary of the largest λ, per text. Below: after permuting it. Lines: quartiles."
    return halves(table, SIDES, AXIS).properties(title=read)
