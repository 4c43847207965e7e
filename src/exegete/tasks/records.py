"""Records: one row of named values, as files give it, to a record; what is wrong with a row names its place."""

from collections.abc import Mapping, Sequence
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record


def record(
    row: Mapping[str, Any], where: str, text: str = "text", label: str = "label", question: str | None = None
) -> Record:
    """The record of a row; `where` is its file and line, for errors.

    A field `rationale` may list `[start, end)` spans over the white-space words of the text, of a pair over those of
    both texts, one after the other. With a question, a field `candidates` may list the answers to choose from.
    """
    texts = (_text(row, where, text), *([_text(row, where, question)] if question else []))
    answer = _label(row, where, label)
    candidates = _candidates(row.get("candidates"), answer, where) if question else ()
    return Record(texts, answer, _spans(row.get("rationale") or (), where), candidates)


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


def _candidates(value: Any, answer: str, where: str) -> tuple[str, ...]:
    """The answers to choose from, in their order; none given are all."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ExegeteError(f"{where}: 'candidates' is not a list of answers but {value!r:.40}: use jsonl or parquet")
    named = tuple(str(candidate).strip() for candidate in value)
    if answer not in named:
        raise ExegeteError(f"{where}: the answer '{answer}' is not among its candidates: add it, or drop the row")
    return named


def _spans(value: Any, where: str) -> tuple[tuple[int, int], ...]:
    try:
        spans = tuple((start, end) for start, end in value)
    except (TypeError, ValueError):
        spans = ((value, value),)
    if not all(isinstance(place, int) for span in spans for place in span):
        raise ExegeteError(f"{where}: 'rationale' is not a list of [start, end] pairs: {value!r:.40}")
    return spans
