"""Results: what a run found, from its folder: rows, summaries and figures by experiment."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import unknown
from exegete.base.extras import to_pandas
from exegete.base.parquet import read_parquet
from exegete.experiments.common.charts import charts_of
from exegete.experiments.common.contract import Experiment
from exegete.runs.names import names_in, rename_cells
from exegete.runs.run import finished_cells, study_of
from exegete.runs.study import Study
from exegete.runs.tables import models_table, write_csv


@dataclass(frozen=True)
class Result:
    """What one experiment found."""

    name: str
    run: Path
    experiment: Experiment

    @cached_property
    def rows(self) -> pl.DataFrame:
        """One row per example (× pair of methods, …), with task, model, seed and split."""
        return read_parquet(self.run / "tables" / f"{self.name}.parquet")

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Numbers with n, interval and chance."""
        return read_parquet(self.run / "tables" / f"{self.name}_summary.parquet")

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Further tables by name."""
        return self.experiment.tables(self.rows)

    @property
    def figures(self) -> Mapping[str, Any]:
        """Charts (altair) by name."""
        return charts_of(self.run, self.experiment, self.rows, self.summary)

    def figure(self, name: str) -> Any:
        """One chart (altair)."""
        charts = self.figures
        if name not in charts:
            raise unknown(f"figure of {self.name}", name, charts)
        return charts[name]

    def to_pandas(self) -> Any:
        """The summary as a pandas frame (extra `pandas`)."""
        return to_pandas(self.summary)

    def save(self, path: str | Path) -> None:
        """Write the summary as CSV."""
        write_csv(Path(path), self.summary)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


@dataclass(frozen=True)
class Run:
    """A run that is complete: `run["agreement"]` is what an experiment found."""

    folder: Path
    study: Study

    @classmethod
    def read(cls, folder: str | Path) -> "Run":
        """The run of a folder."""
        return cls(Path(folder), study_of(Path(folder)))

    def __getitem__(self, experiment: str) -> Result:
        built = self.study.built_experiments()
        there = {name for name in built if (self.folder / "tables" / f"{name}.parquet").is_file()}
        if experiment not in there:
            raise unknown("experiment of this run", experiment, there)
        return Result(experiment, self.folder, built[experiment])

    @property
    def models(self) -> pl.DataFrame:
        """How well every model predicts."""
        return models_table(rename_cells(finished_cells(self.folder, self.study), names_in(self.folder)))
