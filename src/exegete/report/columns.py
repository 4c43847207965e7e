"""Columns: how numbers read, the same on a page and in a terminal."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

NULL = "–"
Form = Literal["text", "number", "count", "share", "probability", "interval", "estimate", "spread", "verdict", "judged"]


@dataclass(frozen=True)
class Column:
    """One column of a table: its title, the fields of the frame it shows, and how."""

    title: str
    of: tuple[str, ...]
    form: Form
    varies: bool = False  # shown only where the frame has several values of it
    wide: bool = False  # a terminal has no room for it

    @property
    def numeric(self) -> bool:
        """Whether it is aligned to the right."""
        return self.form not in ("text", "verdict")

    def cell(self, row: Mapping[str, Any]) -> str:
        """What a person reads; what is undefined is a dash.

        >>> interval("low", "high").cell({"low": 0.2134, "high": 0.24512})
        '[0.213, 0.245]'
        >>> count("n").cell({"n": 25000})
        '25,000'
        """
        values = [row[name] for name in self.of]
        if self.form == "judged":  # a test that was not asked has no verdict; one that can't be has no statistic
            return NULL if values[0] is None else _judged(*values)
        if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values):
            return NULL
        return _WRITTEN[self.form](*values)


def text(name: str, title: str = "") -> Column:
    """Words, as they are."""
    return Column(title or _words(name), (name,), "text")


def varying(name: str, title: str = "") -> Column:
    """Words that tell rows apart, where they do."""
    return replace(text(name, title), varies=True)


def wide(*columns: Column) -> tuple[Column, ...]:
    """Columns that only a page has room for."""
    return tuple(replace(column, wide=True) for column in columns)


def number(name: str, title: str = "") -> Column:
    """A correlation or another number near 1, to 3 decimals."""
    return Column(title or _words(name), (name,), "number")


def count(name: str, title: str = "") -> Column:
    """A whole number with thousands separators."""
    return Column(title or _words(name), (name,), "count")


def share(name: str, title: str = "") -> Column:
    """A fraction, in percent."""
    return Column(title or _words(name), (name,), "share")


def probability(name: str, title: str = "") -> Column:
    """A p-value: what is below 0.001 says so."""
    return Column(title or _words(name), (name,), "probability")


def interval(low: str, high: str, title: str = "95 % interval") -> Column:
    """Two bounds in brackets."""
    return Column(title, (low, high), "interval")


def estimate(statistic: str, low: str, high: str, title: str) -> Column:
    """A number with its bounds, to 2 decimals: what a terminal has room for."""
    return Column(title, (statistic, low, high), "estimate")


def mean_and_spread(mean: str, std: str, title: str = "mean ± std") -> Column:
    """A mean and a standard deviation."""
    return Column(title, (mean, std), "spread")


def verdict(name: str = "verdict", title: str = "", settled_by: str = "") -> Column:
    """An outcome in words with its sign, so that colour says nothing alone; perhaps what would settle it."""
    return Column(title or _words(name), (name, settled_by) if settled_by else (name,), "verdict")


def judgement(verdict: str, statistic: str, title: str) -> Column:
    """A verdict's sign and the statistic: what fits where models stand side by side."""
    return Column(title, (verdict, statistic), "judged")


def guess_columns(frame: pl.DataFrame) -> tuple[Column, ...]:
    """A column per field, by its type: whole numbers are counts, other numbers have 3 decimals, the rest is text."""
    return tuple(_guess(name, dtype) for name, dtype in frame.schema.items())


def _guess(name: str, dtype: pl.DataType) -> Column:
    return count(name) if dtype.is_integer() else number(name) if dtype.is_numeric() else text(name)


def _words(name: str) -> str:
    return name.replace("_", " ")


def decimal(value: float, places: int = 3) -> str:
    """A number with a real minus sign, and no minus before zero.

    >>> decimal(-0.0004), decimal(-0.25), decimal(float("inf"))
    ('0.000', '−0.250', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")


def significant(value: float | None, digits: int = 3) -> str:
    """Significant digits with a real minus sign; a dash for what is undefined.

    >>> significant(-0.01234), significant(None), significant(0.0)
    ('−0.0123', '–', '0')
    """
    return NULL if value is None else f"{value + 0.0:.{digits}g}".replace("-", "−")


def class_label(label: str) -> str:
    """A class that is only a number says that it is one.

    >>> class_label("1"), class_label("sports")
    ('class 1', 'sports')
    """
    return f"class {label}" if label.isdigit() else label


def _count(value: float) -> str:
    return f"{value:,}".replace("-", "−")


def _share(value: float) -> str:
    return f"{decimal(100 * value, 1)} %"


def _probability(value: float) -> str:
    return "< 0.001" if value < 0.001 else decimal(value)


def _interval(low: float, high: float) -> str:
    return f"[{decimal(low)}, {decimal(high)}]"


def _spread(mean: float, std: float) -> str:
    return f"{decimal(mean)} ± {decimal(std)}"


def _estimate(statistic: float, low: float, high: float) -> str:
    return f"{decimal(statistic, 2)} [{decimal(low, 2)}, {decimal(high, 2)}]"


def outcome_label(outcome: str, settled_by: str = "") -> str:
    """An outcome as people read it; files and `--json` have its key.

    >>> outcome_label("hangs on"), outcome_label("cannot tell", "texts"), outcome_label("holds")
    ('depends on removal', 'inconclusive (texts)', 'holds')
    """
    words = OUTCOMES.get(outcome, outcome)
    return f"{words} ({settled_by})" if settled_by and outcome == "cannot tell" else words


def _verdict(outcome: str, settled_by: str = "") -> str:
    return f"{SIGNS.get(outcome, '')} {outcome_label(outcome, settled_by)}".strip()


def _judged(value: str, statistic: float | None) -> str:
    return f"{SIGNS[value]} {outcome_label(value) if statistic is None else decimal(statistic)}"


OUTCOMES = {"hangs on": "depends on removal", "cannot tell": "inconclusive"}  # in words; the others are words

SIGNS = {"holds": "✓", "fails": "✗", "hangs on": "±", "cannot tell": "?", "not testable": "○"}
_WRITTEN: dict[Form, Callable[..., str]] = {
    "text": str,
    "number": decimal,
    "count": _count,
    "share": _share,
    "probability": _probability,
    "interval": _interval,
    "estimate": _estimate,
    "spread": _spread,
    "verdict": _verdict,
    "judged": _judged,
}
