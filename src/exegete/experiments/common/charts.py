"""Charts of an experiment, drawn when its tables are written and taken from there by every report."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.memo import key_of, read_memo, write_memo
from exegete.base.source import digest_of, is_ours, package_hash
from exegete.experiments.common.contract import Experiment
from exegete.experiments.common.margins import lower_of, margins_of, show_margins
from exegete.report.drawing import Drawing, drawing


def charts_of(run: Path, experiment: Experiment, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
    """The charts of an experiment by name, with the margins that its run is judged by."""
    with show_margins(margins_of(run), lower_of(run)):
        return experiment.figures(rows, summary)


def draw_charts(run: Path, name: str, experiment: Experiment, rows: pl.DataFrame, summary: pl.DataFrame) -> None:
    """Draw every figure of an experiment whose rows and summary are written, for its folder and for the report."""
    folder = run / "figures"
    found = {figure: drawing(chart) for figure, chart in charts_of(run, experiment, rows, summary).items()}
    for figure, drawn in found.items():
        drawn.save(folder, f"{name}_{figure}")
    if is_ours(experiment):  # what a user's own code draws may change without our knowing
        made = {figure: asdict(each) for figure, each in found.items()}
        write_memo(folder / f"{name}.json", "drawings", _key(run, name, experiment), made)


def read_charts(run: Path, name: str, experiment: Experiment) -> Mapping[str, Drawing] | None:
    """What was drawn of these very tables by this very code; None: nothing."""
    if not is_ours(experiment):
        return None
    made = read_memo(run / "figures" / f"{name}.json", "drawings", _key(run, name, experiment))
    return None if made is None else {figure: Drawing(**each) for figure, each in made.items()}


def _key(run: Path, name: str, experiment: Experiment) -> str:
    """Everything that figures depend on."""
    tables = [run / "tables" / f"{name}{part}.parquet" for part in ("", "_summary")]
    margins = repr((margins_of(run), lower_of(run)))
    return key_of(tables=digest_of(*tables), asked=repr(experiment), margins=margins, code=package_hash())
