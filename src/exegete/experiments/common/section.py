"""The contract of an experiment's sections, and what all of them share."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from exegete.page.columns import Column, text
from exegete.page.labels import importance_labels
from exegete.page.section import Figure, Section, Table


class Found(NamedTuple):
    """What an experiment left in a run."""

    run: Path
    name: str
    experiment: Any  # as its study built it

    @property
    def rows(self) -> pl.DataFrame:
        """All rows."""
        return pl.read_parquet(self.run / "tables" / f"{self.name}.parquet")

    @property
    def summary(self) -> pl.DataFrame:
        """Its numbers with n, interval and chance."""
        return pl.read_parquet(self.run / "tables" / f"{self.name}_summary.parquet")

    def table(self, name: str) -> pl.DataFrame:
        """A further table."""
        return pl.read_csv(self.run / "tables" / f"{self.name}_{name}.csv")

    def charts(self) -> Mapping[str, Any]:
        """Its charts by name."""
        found: Mapping[str, Any] = self.experiment.figures(self.rows, self.summary)
        return found

    def figures(self, title: str = "", /, **titles: str) -> list[Figure]:
        """Its charts under their titles, or under the same one."""
        return [Figure(titles.get(name, title), chart) for name, chart in self.charts().items()]


class Sections(Protocol):
    """One experiment's part of the report: a module with these two functions.

    It may have a third, `examples(found)`, for texts that show what was found: a sentence and heat maps.
    """

    def headline(self, found: Found) -> Table:
        """The one table that a terminal shows."""

    def sections(self, found: Found) -> Iterator[Section]:
        """Everything, for the page."""


def which(frame: pl.DataFrame) -> list[Column]:
    """Task and model, where there is more than one."""
    return [text(name) for name in ("task", "model") if frame[name].n_unique() > 1]


def methods(frame: pl.DataFrame) -> pl.DataFrame:
    """Methods as people say them."""
    return frame.with_columns(pl.col("method").replace_strict(importance_labels(frame["method"])))
