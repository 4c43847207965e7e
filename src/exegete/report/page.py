"""Page: what a report says, before anybody decides how it looks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl
from altair.typing import ChartType

from exegete.report.columns import Column, count, guessed, interval, number, text, verdict


@dataclass(frozen=True)
class Table:
    """A frame with a title, a caption, and the columns to show; without columns, all of them, formatted by type."""

    title: str
    frame: pl.DataFrame
    caption: str = ""
    columns: Sequence[Column] = ()

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that a reader sees."""
        return tuple(self.columns) or guessed(self.frame)

    def cells(self) -> list[list[str]]:
        """What a reader sees, row by row."""
        return [[column.cell(row) for column in self.shown] for row in self.frame.iter_rows(named=True)]


@dataclass(frozen=True)
class Figure:
    """A chart with a title and a caption, and its numbers for those who can't see it (without: those it carries)."""

    title: str
    chart: ChartType
    caption: str = ""
    data: pl.DataFrame | None = None


@dataclass(frozen=True)
class Section:
    """One question's part: text first, then tables and figures."""

    title: str
    anchor: str = ""
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


@dataclass(frozen=True)
class Verdict:
    """One line of the scorecard: a test, what it found, and whether attention passes it."""

    name: str
    verdict: Literal["holds", "fails", "cannot tell"]
    statistic: float | None = None
    interval: tuple[float, float] | None = None
    chance: float | None = None
    n: int | None = None
    criterion: str = ""
    paper: str = ""


@dataclass(frozen=True)
class Report:
    """A question and its answer, then everything that supports it."""

    title: str
    question: str
    answer: str
    verdicts: Sequence[Verdict] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    cite: str = ""


def scorecard(verdicts: Sequence[Verdict]) -> Table:
    """The verdicts as a table: each with its effect, interval, chance level and criterion."""
    low, high = ([v.interval[side] if v.interval else None for v in verdicts] for side in (0, 1))
    frame = pl.DataFrame(
        {
            "test": [v.name for v in verdicts],
            "verdict": [v.verdict for v in verdicts],
            "statistic": pl.Series([v.statistic for v in verdicts], dtype=pl.Float64),
            "low": pl.Series(low, dtype=pl.Float64),
            "high": pl.Series(high, dtype=pl.Float64),
            "chance": pl.Series([v.chance for v in verdicts], dtype=pl.Float64),
            "n": pl.Series([v.n for v in verdicts], dtype=pl.Int64),
            "criterion": [v.criterion for v in verdicts],
            "paper": [v.paper for v in verdicts],
        }
    )
    order = (
        text("test"),
        verdict(),
        number("statistic"),
        interval("low", "high", "interval"),
        number("chance"),
        count("n"),
        text("criterion"),
        text("paper"),
    )
    return Table(
        "Scorecard",
        frame,
        "Each test with its effect, its chance level and its criterion; the intervals hold jointly at 95 %.",
        order,
    )


def anchor(title: str) -> str:
    """A title as an address within the page.

    >>> anchor("Does τ agree? (J&W)")
    'does-agree-j-w'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
