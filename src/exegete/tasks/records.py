"""Records: one row of named values, as files give it, to a record; what is wrong with a row names its place."""

from collections.abc import Mapping
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record


def record(row: Mapping[str, Any], where: str, text: str = "text", label: str = "label") -> Record:
    """The record of a row; `where` is its file and line, for errors.

    A field `rationale` may list `[start, end)` spans over the white-space words of the text.
    """
    return Record((_text(row, where, text),), _label(row, where, label), _spans(row.get("rationale") or (), where))


def _text(row: Mapping[str, Any], where: str, column: str) -> str:
    if column not in row:
        raise ExegeteError(f"{where}: there is no '{column}': give every row one, or drop the row")
    text = row[column]
    if text is None:
        return ""  # an empty text: counted and left out with the others
    if not isinstance(text, str):
        raise ExegeteError(f"{where}: '{column}' is not a text but {text!r:.40}: write it as a string")
    return text


def _label(row: Mapping[str, Any], where: str, column: str) -> str:
    """The class as a string: numbers and truth values are names of classes like any other."""
    label = row.get(column)
    if label is None or label == "":
        raise ExegeteError(f"{where}: there is no '{column}': give every row one, or drop the row")
    if not isinstance(label, str | int | float):
        raise ExegeteError(f"{where}: '{column}' is not a class but {label!r:.40}: write a string or a number")
    return str(label).strip()


def _spans(value: Any, where: str) -> tuple[tuple[int, int], ...]:
    try:
        spans = tuple((start, end) for start, end in value)
    except (TypeError, ValueError):
        spans = ((value, value),)
    if not all(isinstance(place, int) for span in spans for place in span):
        raise ExegeteError(f"{where}: 'rationale' is not a list of [start, end] pairs: {value!r:.40}")
    return spans
