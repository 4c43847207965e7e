"""Panels: what all figures share. A grid or lines of panels, one per task and model, and how their rows are named."""

import json
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

import altair as alt
import polars as pl

from exegete.report.labels import model_labels, task_labels
from exegete.report.theme import PALETTE, SHAPES, inline

NOISE = "random"
TICKS = [-1, -0.5, 0, 0.5, 1]  # of an axis of coefficients
WIDTH = 760  # of a whole figure: a column of text
Spacing = int | dict[str, int]


def grid(
    drawn: alt.LayerChart,
    table: pl.DataFrame,
    column: str,
    row: str = "panel",
    spacing: Spacing = 24,
    order: Iterable[str] | None = None,
) -> alt.FacetChart:
    """A column of panels per value of a field (in the given order, or the table's), a row per value of another.

    A single row needs no name.
    """
    down = in_order(table[row])
    rows = rows_of(row, down) if len(down) > 1 else alt.Undefined
    across = columns_of(column, in_order(table[column]) if order is None else order)
    faceted: alt.FacetChart = drawn.facet(row=rows, column=across, data=inline(table), spacing=spacing)
    return faceted


def lines(
    drawn: alt.Chart | alt.LayerChart,
    table: pl.DataFrame,
    columns: int,
    spacing: Spacing = 24,
    letters: int | None = None,
) -> alt.FacetChart:
    """A panel per task and model, so many in a line, each under its label, which is broken after so many letters."""
    panels = in_order(table["panel"])
    said = in_lines(panels, drawn.width // 6 if letters is None else letters)
    header = alt.Header(title=None, labelAnchor="start", labelExpr=said)
    facet = alt.Facet("panel:N", sort=panels, header=header)
    faceted: alt.FacetChart = drawn.facet(facet, columns=columns, data=inline(table), spacing=spacing)
    return faceted


def series(field: str, names: Sequence[str], legend: Any = alt.Undefined) -> tuple[alt.Color, alt.Shape]:
    """A colour and a shape for every name, which say the same twice; colours that come again have other shapes."""
    colours = alt.Scale(domain=list(names), range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])
    shapes = alt.Scale(domain=list(names), range=[SHAPES[i % len(SHAPES)] for i in range(len(names))])
    return alt.Color(f"{field}:N", scale=colours, legend=legend), alt.Shape(f"{field}:N", scale=shapes, legend=legend)


def complete(table: pl.DataFrame, row: str, column: str, *like: str) -> pl.DataFrame:
    """A line without numbers, like the first, for every panel that has none: the grid would close up otherwise."""
    rows, columns = (table.select(pl.col(name).unique(maintain_order=True)) for name in (row, column))
    missing = rows.join(columns, how="cross").join(table, on=[row, column], how="anti", maintain_order="left")
    return pl.concat([table, missing.join(table.head(1).select(*like), how="cross")], how="diagonal")


def with_panel(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `panel`: the model's short label, with the task before it where there are several."""
    models = model_labels(frame["model"])
    labels = task_labels(frame["task"])
    tasks = {task: f"{label} · " if len(labels) > 1 else "" for task, label in labels.items()}
    names = [tasks[task] + models[model] for task, model in frame.select("task", "model").iter_rows()]
    return frame.with_columns(pl.Series("panel", names, dtype=pl.String))


def without_noise(frame: pl.DataFrame) -> pl.DataFrame:
    """Only pairs of importances that know something."""
    return frame.filter(pl.col("first") != NOISE, pl.col("second") != NOISE)


def in_order(values: pl.Series) -> list[str]:
    """Every value once, in the order of the frame."""
    return values.unique(maintain_order=True).to_list()


def columns_of(field: str, order: Iterable[str]) -> alt.Column:
    """A column of panels per value, its label above the first row."""
    return alt.Column(f"{field}:N", sort=list(order), header=alt.Header(title=None, labelPadding=8))


def rows_of(field: str, order: Iterable[str]) -> alt.Row:
    """A row of panels per value, its label upright beside the axis."""
    labels = list(order)
    header = alt.Header(title=None, labelAngle=-90, labelOrient="left", labelPadding=12, labelExpr=in_lines(labels, 21))
    return alt.Row(f"{field}:N", sort=labels, header=header)


def in_lines(labels: Iterable[str], width: int) -> str:
    """A vega expression that breaks the labels of a header: cutting them would hide what tells two panels apart."""
    return json.dumps({label: _lines(label, width) for label in labels}, ensure_ascii=False) + "[datum.label]"


def _lines(label: str, width: int) -> list[str]:
    """Task and model in at most two lines each; in one together where they fit.

    >>> _lines("rotten tomatoes · average: tanh, softmax, hidden=128", 23)
    ['rotten tomatoes', 'average: tanh, softmax,', 'hidden=128']
    """
    parts = [label] if len(label) <= width else label.split(" · ")
    return [line for part in parts for line in wrap(part, width, max_lines=2, placeholder="…")]
