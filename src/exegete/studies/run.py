"""Run: the folder that a study fills: stages, tables, figures, report, and a manifest, written last."""

import fcntl
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from exegete import __version__
from exegete.base.errors import ExegeteError
from exegete.base.files import read_json, said_plainly, whole_file, write_json
from exegete.base.progress import Progress, silent
from exegete.studies.cell import Work, rows_of, run_cell
from exegete.studies.engine import LocalEngine
from exegete.studies.keys import code_hash, key_of
from exegete.studies.store import peak_memory, write_parquet
from exegete.studies.study import Cell, Study

MANIFEST, STUDY = "manifest.json", "study.json"
LIBRARIES = ("torch", "numpy", "polars", "scipy", "entmax", "altair", "safetensors")


def run_study(
    study: Study,
    out: Path,
    cells: Sequence[Cell] | None = None,
    engine: LocalEngine | None = None,
    progress: Progress = silent,
) -> Path:
    """Run or resume a study, or some cells of it; returns the run folder."""
    started = time.time()
    with locked(out):
        _claim(out, study)
        _sweep(out)
        (out / MANIFEST).unlink(missing_ok=True)
        jobs = [Work(out, study, cell) for cell in cells or study.cells]
        with engine or LocalEngine(min(len(jobs), LocalEngine().workers)) as running:
            for _ in running.map(_job, jobs, progress):
                pass
        found = finished_cells(out, study)
        write_tables(out, study, found)
        write_json(out / MANIFEST, manifest(study, found, time.time() - started))
    return out


def _job(work: Work, progress: Progress) -> dict[str, Any]:
    return run_cell(work._replace(progress=progress))


def _claim(out: Path, study: Study) -> None:
    """A run folder belongs to one study: refuse another's rather than mix or overwrite."""
    mine = study.model_dump(mode="json")
    if (out / STUDY).is_file():
        theirs = read_json(out / STUDY, "run")
        if theirs != mine:
            changed = sorted(name for name in mine if theirs.get(name) != mine[name])
            raise ExegeteError(
                f"{out} is the run folder of another study ('{theirs.get('name')}' with other {', '.join(changed)}): "
                "choose another with --out"
            )
    elif out.is_dir() and any(p.name != ".lock" for p in out.iterdir()):
        raise ExegeteError(f"{out} is not empty and no run folder: choose another with --out")
    else:
        write_json(out / STUDY, mine)


def _sweep(out: Path) -> None:
    """Remove what a killed process had half written; nobody else is at work here."""
    for left in out.rglob(".*"):
        if left.name != ".lock" and left.is_file():
            left.unlink()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """One process at a time in a run folder; the lock ends with the process, however it ends."""
    with said_plainly(out):
        out.mkdir(parents=True, exist_ok=True)
        file = (out / ".lock").open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExegeteError(
                f"another exegete is at work in {out}: wait for it, or choose another folder with --out"
            ) from None
        yield


def finished_cells(out: Path, study: Study) -> list[dict[str, Any]]:
    """Every cell of the study that this code has finished, in the study's order."""
    mine, code = key_of(study=study.model_dump(mode="json")), code_hash("exegete.studies.cell")
    order = {cell: place for place, cell in enumerate(study.cells)}
    found = [read_json(path, "cell") for path in (out / "cells").glob("*.json")]
    current = [facts for facts in found if facts["study"] == mine and facts["code"] == code]
    return sorted(current, key=lambda facts: order[Cell(facts["task"], facts["model"], facts["seed"])])


def write_tables(out: Path, study: Study, cells: Sequence[dict[str, Any]]) -> None:
    """Rows and summary of every experiment over all cells, as parquet and CSV, and the figures."""
    from exegete.figures.theme import save

    write_csv(out / "tables" / "models.csv", models_table(cells))
    for name, built in study.built_experiments().items():
        rows = pl.concat([frame for facts in cells for frame in rows_of(out, facts, name)])
        summary = built.summary(rows)
        write_parquet(out / "tables" / f"{name}.parquet", rows)
        write_parquet(out / "tables" / f"{name}_summary.parquet", summary)
        for table, frame in ({"summary": summary} | dict(built.tables(rows))).items():
            write_csv(out / "tables" / f"{name}_{table}.csv", frame)
        for figure, chart in built.figures(rows, summary).items():
            save(chart, out / "figures", f"{name}_{figure}")


def models_table(cells: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """How well every model predicts."""
    return pl.DataFrame(
        [
            {"task": c["task"], "model": c["model"], "seed": c["seed"], "best_epoch": c["metrics"]["best_epoch"]}
            | {f"test_{name}": value for name, value in c["metrics"]["test"].items()}
            for c in cells
        ],
        infer_schema_length=None,
    )


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, whole, with numbers to six digits."""
    rounded = frame.with_columns(pl.selectors.float().round(6))
    with whole_file(path) as beside:
        rounded.write_csv(beside)


def manifest(study: Study, cells: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Everything that the numbers depend on."""
    return {
        "exegete": __version__,
        "study": study.model_dump(mode="json"),
        "cells": [
            {k: c[k] for k in ("task", "model", "seed", "weights", "data", "training", "predict", "experiments")}
            for c in cells
        ],
        "code": code_hash("exegete.studies.cell"),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "machine": platform.machine(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "seconds": round(seconds, 1),
        "peak_mb": peak_memory(),
    }


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a complete run; its absence means that the run is not complete."""
    if not run.is_dir():
        raise ExegeteError(f"there is no run folder {run}: make one with `exegete run STUDY.toml --out {run}`")
    if not (run / MANIFEST).is_file():
        raise ExegeteError(
            f"the run in {run} is not complete (no manifest.json): run its study again, it goes on where it stopped"
        )
    facts: dict[str, Any] = read_json(run / MANIFEST, "run")
    return facts
