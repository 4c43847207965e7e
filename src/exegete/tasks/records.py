"""Records: one row of named values, as files give it, to a record; what is wrong with a row names its place."""

import json
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record

NOT_A_CLASS = ("", "nan", "<na>")  # a cell without a class, and how pandas writes one that is missing


def record(
    row: Mapping[str, Any], where: str, text: str = "text", label: str = "label", question: str | None = None
) -> Record:
    """The record of a row; `where` is its file and line, for errors.

    A field `rationale` may list places of white-space words of the text, or `[start, end)` spans of them; of a pair
    they count the words of both texts, one after the other. With a question, a field `candidates` may list the answers
    to choose from.
    """
    texts = (_text(row, where, text), *([_text(row, where, question)] if question else []))
    answer = _label(row, where, label) if label else ""
    candidates = _candidates(row.get("candidates"), answer, where) if question else ()
    return Record(texts, answer, _spans(row.get("rationale"), where), candidates)


def _text(row: Mapping[str, Any], where: str, column: str) -> str:
    if column not in row:
        raise ExegeteError(f"{where}: there is no '{column}': give every row one, or drop the row")
    text = row[column]
    if is_missing(text):
        return ""  # an empty text: counted and left out with the others
    if not isinstance(text, str):
        raise ExegeteError(f"{where}: '{column}' is not a text but {text!r:.40}: write it as a string")
    return whole_characters(text)


def _label(row: Mapping[str, Any], where: str, column: str) -> str:
    """The class as a string: numbers and truth values are names of classes like any other."""
    label = row.get(column)
    if not has_class(label):
        raise ExegeteError(f"{where}: there is no '{column}': give every row one, or drop the row")
    if not isinstance(label, str | int | float):
        raise ExegeteError(f"{where}: '{column}' is not a class but {label!r:.40}: write a string or a number")
    return whole_characters(str(label).strip())


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for them.

    >>> is_missing(float("nan")), is_missing(0), is_missing("")
    (True, False, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and isnan(value)


def has_class(label: object) -> bool:
    """Whether a value names a class; an empty cell doesn't, nor what pandas writes for one.

    >>> has_class("none"), has_class(" "), has_class("NaN")
    (True, False, False)
    """
    return not is_missing(label) and not (isinstance(label, str) and label.strip().lower() in NOT_A_CLASS)


def whole_characters(text: str) -> str:
    """The text with U+FFFD for half characters (lone surrogates), which no file can hold.

    >>> whole_characters("a \\ud800 b")
    'a \ufffd b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


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
    """The `[start, end)` spans of a rationale, which may be a list of places instead; in a csv file, as JSON."""
    if is_missing(value) or value == "":
        return ()
    try:
        marked = list(json.loads(value) if isinstance(value, str) else value)
        if marked and all(map(_is_place, marked)):
            return _single_words(marked, where)
        spans = tuple((start, end) for start, end in marked)
    except (TypeError, ValueError, RecursionError):
        spans = (("", ""),)
    if not all(_is_place(place) for span in spans for place in span):
        raise ExegeteError(
            f"{where}: 'rationale' is not a list of [start, end] pairs, or of places of words: {value!r:.40}"
        )
    return spans


def _single_words(places: Sequence[int], where: str) -> tuple[tuple[int, int], ...]:
    """The spans of words that are listed by their places; a 0 or 1 for every word is no such list."""
    if len(set(places)) < len(places):
        raise ExegeteError(
            f"{where}: 'rationale' names a word twice: {places!r:.40}: list the places of the marked words, counted "
            "from 0, each once"
        )
    return tuple((place, place + 1) for place in places)


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
