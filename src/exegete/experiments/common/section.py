"""The contract of an experiment's sections, and how they are declared: tables and parts, before there are numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from exegete.base.parquet import read_parquet
from exegete.experiments.common.charts import charts_of, read_charts
from exegete.experiments.common.margins import Margins, margins_of
from exegete.report.columns import Column, varying
from exegete.report.labels import importance_labels, name_columns
from exegete.report.section import Figure, Section, Table

SUMMARY = "summary"
WHICH = (varying("task"), varying("model"))  # what a row is of, where there is more than one


class QuestionResult(NamedTuple):
    """What an experiment left in a run."""

    run: Path
    name: str
    experiment: Any  # as its study built it

    @property
    def rows(self) -> pl.DataFrame:
        """All rows."""
        return read_parquet(self.run / "tables" / f"{self.name}.parquet")

    @property
    def summary(self) -> pl.DataFrame:
        """Its numbers with n, interval and chance."""
        return read_parquet(self.run / "tables" / f"{self.name}_summary.parquet")

    @property
    def margins(self) -> Margins:
        """What every test must reach in this run."""
        return margins_of(self.run)

    def table(self, name: str) -> pl.DataFrame:
        """A further table."""
        return pl.read_csv(self.run / "tables" / f"{self.name}_{name}.csv", glob=False)

    def charts(self) -> Mapping[str, Any]:
        """Its charts by name: as they were drawn with its tables, or else drawn now."""
        found: Mapping[str, Any] | None = read_charts(self.run, self.name, self.experiment)
        return charts_of(self.run, self.experiment, self.rows, self.summary) if found is None else found


class Sections(Protocol):
    """One experiment's part of the report: a module with these two functions.

    It may have a third, `examples(found)`, for texts that show what was found: a sentence and heat maps.
    """

    def headline(self, found: QuestionResult) -> Table:
        """The one table that a terminal shows."""

    def sections(self, found: QuestionResult) -> Iterator[Section]:
        """Everything, for the page."""


@dataclass(frozen=True)
class Shown:
    """A table of a report: which frame, which of its rows, and how they are said. Task and model come before all else.

    Tasks, models and methods are labelled; `words` has those of other columns. What a table needs beyond that is a
    function of its frame: `first` of the frame as it was written, `then` of one in words.
    """

    title: str
    columns: Sequence[Column] = ()
    caption: str | Callable[[Margins], str] = ""  # of the margins that the run is judged by, where it says one
    of: str = SUMMARY  # or a further table of the experiment
    where: pl.Expr | None = None
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    first: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame
    then: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame

    def __call__(self, found: QuestionResult) -> Table:
        """The table with its numbers."""
        caption = self.caption(found.margins) if callable(self.caption) else self.caption
        frame = found.summary if self.of == SUMMARY else found.table(self.of)
        return replace(self, caption=caption).on(frame)

    def on(self, frame: pl.DataFrame) -> Table:
        """The table of a frame whose caption is known."""
        assert isinstance(self.caption, str)
        kept = self.first(frame if self.where is None else frame.filter(self.where))
        placed = {"task", "model"} <= set(kept.columns)
        kept = name_columns(kept) if placed else kept
        kept = methods(kept) if ("method",) in [column.of for column in self.columns] else kept
        said = kept.with_columns(pl.col(name).replace(words) for name, words in self.words.items())
        columns = (*(WHICH if placed else ()), *self.columns) if self.columns else ()
        return Table(self.title, self.then(said), self.caption, columns)


def shown(title: str, *columns: Column, **how: Any) -> Shown:
    """A table of a report with its columns: `Shown`, to be read line by line."""
    return Shown(title, columns, **how)


Paragraphs = Sequence[str] | Callable[[QuestionResult], Sequence[str]]
Titles = Mapping[
    str, str | tuple[str, str]
]  # by the name of a figure, with a caption where it needs one; "": all others


@dataclass(frozen=True)
class Passage:
    """A section of a report: what is said, its tables (those that there are of this run), its figures by their titles.

    A part whose figures are not drawn of this run is left out.
    """

    title: str
    paragraphs: Paragraphs
    tables: Sequence[Callable[[QuestionResult], Table | None]]
    figures: str | Titles | Callable[[QuestionResult], Titles] = field(default_factory=dict)

    def section(self, found: QuestionResult, charts: Mapping[str, Any]) -> Section | None:
        """The section with its numbers."""
        titles = self.figures(found) if callable(self.figures) else self.figures
        titles = {"": titles} if isinstance(titles, str) else titles
        said = {name: titles.get(name, titles.get("")) for name in charts}
        figures = [_figure(title, charts[name]) for name, title in said.items() if title is not None]
        if titles and not figures:
            return None
        paragraphs = self.paragraphs(found) if callable(self.paragraphs) else self.paragraphs
        tables = [table for declared in self.tables if (table := declared(found)) is not None]
        return Section(self.title, "", paragraphs, tables, figures)


def _figure(title: str | tuple[str, str], chart: Any) -> Figure:
    said, caption = (title, "") if isinstance(title, str) else title
    return Figure(said, chart, caption)


def chapter(
    shortest: Callable[[QuestionResult], Table], *parts: Passage
) -> tuple[Callable[..., Table], Callable[..., Any]]:
    """`headline` and `sections` of an experiment: a table as far as a terminal has room, and the parts of a chapter."""

    def headline(found: QuestionResult) -> Table:
        return shortest(found).narrow

    def sections(found: QuestionResult) -> Iterator[Section]:
        charts = found.charts()
        yield from filter(None, (part.section(found, charts) for part in parts))

    return headline, sections


def methods(frame: pl.DataFrame) -> pl.DataFrame:
    """Methods as people say them."""
    return frame.with_columns(pl.col("method").replace_strict(importance_labels(frame["method"])))


def by_mean(*keys: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """The highest mean first within each of the keys."""
    falling = [False] * len(keys) + [True]
    return lambda frame: frame.sort([*keys, "mean"], descending=falling, nulls_last=True, maintain_order=True)


def keep_decimals(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Settings such as λ as they were written: three decimals would hide them."""
    return frame.with_columns(pl.col(*names).cast(pl.Float64).map_elements("{:g}".format, pl.String))


def better() -> pl.Expr:
    """What an interval of a difference says."""
    low, high = pl.col("low") > 0, pl.col("high") < 0
    return pl.when(low).then(pl.lit("better")).when(high).then(pl.lit("worse")).otherwise(pl.lit("cannot tell"))
