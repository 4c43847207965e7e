"""Tabulating: what an experiment found in all cells of a run, as tables (parquet and CSV) and figures."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from exegete.base.errors import DiskError, ExegeteError, describe_error
from exegete.base.files import whole_file
from exegete.base.parquet import checksum, write_parquet
from exegete.base.progress import Progress
from exegete.experiments.common.contract import Streaming
from exegete.experiments.common.parts import AllRows, RowsPart
from exegete.experiments.faithfulness.leaderboard import with_costs
from exegete.runs.engine.contract import Engine
from exegete.runs.store import read_shards
from exegete.runs.study import Study

HELD = 200_000  # rows of an experiment that are held together, where it can be told of in parts


class Finished(NamedTuple):
    """One experiment of a study, and the finished cells that it was asked of."""

    run: Path
    study: Study
    experiment: str
    cells: Sequence[dict[str, Any]]

    def __str__(self) -> str:
        return f"tables and figures of {self.experiment}"


class Tabulated(NamedTuple):
    """What was written of an experiment, and what could not be."""

    checksums: dict[str, str]  # by file
    failures: list[str]  # a sentence each


def write_tables(
    out: Path, study: Study, cells: Sequence[dict[str, Any]], engine: Engine, progress: Progress
) -> Tabulated:
    """Rows, summary, tables and figures of every experiment over all cells; experiments side by side."""
    common = {"models": models_table(cells), "curves": curves_table(cells)}
    for name, frame in common.items():
        write_csv(out / "tables" / f"{name}.csv", frame)
    every = Tabulated(checksums(out, [out / "tables" / f"{name}.csv" for name in common]), [])
    asked = {name for facts in cells for name in facts["experiments"]}
    if not asked:
        reasons = {note for facts in cells for note in facts["notes"]}
        raise ExegeteError(f"no experiment of study '{study.name}' suits its tasks: {'; '.join(sorted(reasons))}")
    # A narrowed run may have none of an experiment's tasks. Those that scored most have the largest tables: they begin.
    built = sorted(study.built_experiments().items(), key=lambda pair: -len(pair[1].importances))
    found = [Finished(out, study, name, cells) for name, _ in built if name in asked]
    for done, (_, tabulated) in enumerate(engine.map(_tabulate, found)):
        progress("tables and figures", done + 1, len(found))
        every.checksums.update(tabulated.checksums)
        every.failures.extend(tabulated.failures)
    return every


def checksums(run: Path, files: Iterable[Path]) -> dict[str, str]:
    """Of files of a run, by name."""
    return {path.relative_to(run).as_posix(): checksum(path) for path in files}


def _tabulate(found: Finished, progress: Progress) -> Tabulated:  # noqa: ARG001
    from exegete.experiments.common.charts import draw_charts
    from exegete.runs.plugins import load_plugins

    load_plugins(found.study.plugins)
    name, tables, built = found.experiment, found.run / "tables", found.study.built_experiments()[found.experiment]
    parts = AllRows(part for facts in found.cells for part in row_parts(found.run, facts, name))
    if isinstance(built, Streaming) and parts.rows > HELD:
        summary, more = built.streamed(parts)
        rows = parts[0].lazy().head(0).collect() if built.shown is None else parts.some(built.shown)
        with whole_file(tables / f"{name}.parquet") as beside:
            parts.sink(beside)
    else:
        rows = parts.whole()
        summary, more = built.summary(rows), built.tables(rows)
        write_parquet(tables / f"{name}.parquet", rows)
    write_parquet(tables / f"{name}_summary.parquet", summary)
    every = {"summary": summary, "costs": costs_table(found.cells, name), **more}
    if "leaderboard" in every:
        every["leaderboard"] = with_costs(every["leaderboard"], every["costs"])
    for table, frame in every.items():
        write_csv(tables / f"{name}_{table}.csv", frame)
    failures = []
    try:
        draw_charts(found.run, name, built, rows, summary)
    except DiskError:  # the tables would not fit, either
        raise
    except Exception as error:  # noqa: BLE001 - a figure must not cost what was computed: it is said at the end
        failures.append(f"the figures of {name} can't be drawn ({describe_error(error)}); its tables are kept")
    written = [tables / f"{name}{of}" for of in (".parquet", "_summary.parquet", *(f"_{table}.csv" for table in every))]
    return Tabulated(checksums(found.run, written), failures)


def row_parts(run: Path, facts: dict[str, Any], experiment: str) -> Iterator[RowsPart]:
    """The rows of a finished cell, shard by shard."""
    for split, folder in facts["experiments"].get(experiment, {}).items():
        of = {name: facts[name] for name in ("task", "model", "seed")} | {"split": split}
        yield from (RowsPart(path, of) for path in read_shards(run / "stages" / folder))


def costs_table(cells: Sequence[dict[str, Any]], experiment: str) -> pl.DataFrame:
    """What the scores of an experiment took per text, and their errors: means over seeds, on the split asked last."""
    rows = [{"task": c["task"], "model": c["model"]} | found for c in cells for found in c["costs"].get(experiment, ())]
    if not rows:
        return pl.DataFrame(schema={"task": pl.String, "model": pl.String, "method": pl.String})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    last = frame.filter(pl.col("split") == frame["split"][-1])
    keys = ["task", "model", "split", "method"]
    return last.group_by(keys, maintain_order=True).agg(
        pl.col("n", "all_zero").sum(),
        pl.col("forward", "backward", "ms", "mean_error").mean(),
        pl.col("max_error").max(),
    )


def models_table(cells: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """How well every model predicts, and whether better than a guess (`exegete.training.skill`)."""
    return pl.DataFrame(
        [
            {"task": c["task"], "model": c["model"], "seed": c["seed"], "best_epoch": c["metrics"]["best_epoch"]}
            | {"majority": c["majority"], "texts": c["texts"]}
            | {f"skill_{name}": value for name, value in c.get("skill", {}).items()}
            | {f"test_{name}": value for name, value in c["metrics"]["test"].items()}
            for c in cells
        ],
        infer_schema_length=None,
    )


def curves_table(cells: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """How well every model predicted on dev after each epoch, and which epoch was kept; of those trained here."""
    rows = [
        {"task": c["task"], "model": c["model"], "seed": c["seed"], "epoch": epoch, "kept": epoch == best} | scores
        for c in cells
        for best in [c["metrics"].get("best_epoch")]
        for epoch, scores in enumerate(c["metrics"].get("history", ()), 1)
    ]
    keys = {"task": pl.String, "model": pl.String, "seed": pl.Int64, "epoch": pl.Int64, "kept": pl.Boolean}
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame(schema=keys)


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, whole, with numbers to six digits."""
    rounded = frame.with_columns(pl.selectors.float().round(6))
    with whole_file(path) as beside:
        rounded.write_csv(beside)
