"""Kinds: one number of every text, a violin per task and model, together by the kind of task.

Vashishth et al. (2019, figures 2 and 3) put tasks of one text, of two texts and of generation side by side: their claim
is that attention matters for the last two only.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from exegete.base.names import parse
from exegete.report.labels import model_labels, task_labels
from exegete.report.panels import in_order
from exegete.report.theme import PALETTE, inline, nothing, themed
from exegete.report.violin import Axis, ViolinPlace, outline

ROOM = 46  # pixels of a violin
WIDTH = 470


def across(rows: pl.DataFrame, value: str, axis: Axis, kinds: Sequence[str]) -> alt.Chart | alt.LayerChart:
    """A violin per task and model with its mean; colours are kinds, which come one after the other."""
    table, lines = kinds_table(rows, value, axis, kinds)
    if table.is_empty():
        return nothing("no text has a value")
    there = [kind for kind in kinds if kind in table["kind_of_task"]]
    read = "A violin per task and model, all equally high. Lines: quartiles; dot: mean; n at the right."
    chart = _layers(table, axis, there, lines).properties(width=WIDTH, height=ROOM * len(lines), title=read)
    said = f"Violins of {axis.title} for every task and model, by kind of task: {', '.join(there)}."
    return themed(chart, said, table)


def kinds_table(rows: pl.DataFrame, value: str, axis: Axis, kinds: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """What is drawn, and the labels of the violins from the first to the last."""
    kept = _labelled(rows.filter(pl.col(value).is_not_null()))
    if kept.is_empty():
        return pl.DataFrame(), []
    top = axis.top or float(kept[value].max()) or 1.0  # type: ignore[arg-type]
    parts: list[pl.DataFrame] = []
    labels: list[str] = []
    for kind in kinds:
        own = kept.filter(pl.col("kind") == kind)
        for panel in in_order(own["panel"]):
            values = own.filter(pl.col("panel") == panel)[value].to_numpy().astype(np.float64)
            shape = outline(values, top, float(len(labels)), ViolinPlace())
            mean = {"kind": ["mean"], "x": [values.mean()], "y": [float(len(labels))], "y2": [float(len(labels))]}
            both = pl.concat(
                [shape, pl.DataFrame(mean).with_columns(n=pl.lit(len(values), pl.Int64)).select(shape.columns)]
            )
            parts.append(both.with_columns(kind_of_task=pl.lit(kind), label=pl.lit(panel)))
            labels.append(panel)
    return pl.concat(parts), labels


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `panel`: task and model; settings tell models of one task apart, and not those of other kinds."""
    tasks = task_labels(rows["task"])
    found = {
        (task, model): f"{tasks[task]} · {parse(model).name}: {label}"
        for (task,), own in rows.group_by("task", maintain_order=True)
        for model, label in model_labels(own["model"]).items()
    }
    names = [found[pair] for pair in rows.select("task", "model").iter_rows()]
    return rows.with_columns(pl.Series("panel", names, dtype=pl.String))


def _layers(table: pl.DataFrame, axis: Axis, kinds: Sequence[str], labels: Sequence[str]) -> alt.LayerChart:
    top = axis.top or float(table["x"].max())  # type: ignore[arg-type]
    names = "[" + ", ".join(repr(label) for label in labels) + "][datum.value]"
    side = alt.Axis(
        title=None,
        values=list(range(len(labels))),
        labelExpr=names,
        domain=False,
        grid=False,
        ticks=False,
        labelLimit=320,
    )
    scale = alt.Scale(domain=[len(labels) - 0.5, -0.5], nice=False)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title=axis.title, tickCount=5, format="~g", grid=True),
    )
    y = alt.Y("y:Q", scale=scale, axis=side)
    colour = alt.Color(
        "kind_of_task:N",
        scale=alt.Scale(domain=list(kinds), range=list(PALETTE[: len(kinds)])),
        legend=alt.Legend(symbolType="square", symbolStrokeWidth=0),
    )
    base = alt.Chart(inline(table)).encode(x=x, y=y, y2="y2:Q")
    several = alt.FieldOneOfPredicate(field="kind", oneOf=["quartile", "median"])
    thickness = alt.condition(alt.datum.kind == "median", alt.value(2), alt.value(0.8))
    point = alt.Chart(inline(table)).encode(x=x, y=y)
    layers = [
        base.transform_filter(alt.datum.kind == "density")
        .mark_area(opacity=0.6).encode(color=colour, detail="label:N"),
        base.transform_filter(several).mark_rule(style="mark").encode(strokeWidth=thickness),
        base.transform_filter(alt.datum.kind == "tick").mark_rule(strokeWidth=1.5).encode(color=colour),
        point.transform_filter(alt.datum.kind == "mean").mark_point(style="mark", filled=True, size=36, opacity=1),
        point.transform_filter(alt.datum.kind == "n")
        .mark_text(style="note", align="left", dx=5, clip=False).encode(text="n:Q"),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers)
