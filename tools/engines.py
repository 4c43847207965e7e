"""One study, two engines: `python -m tools.engines audit` runs it here and on a Ray cluster, and compares the tables.

The cluster is two nodes on this machine, with one worker each; this machine's own engine has two workers. Tables must
be equal byte for byte, but for milliseconds. `--task`, `--seeds` and `--models` choose some cells of a study. What was
seen is a line of a log, and what is computed is kept under `--runs`, so that a run that was stopped goes on.
"""

import argparse
from pathlib import Path

from tests.runs.clustered import assert_same_tables, two_nodes

from exegete.runs.engine import engine_of
from exegete.runs.run import read_manifest, run_study
from exegete.runs.study import Cell, Study, load_study


def chosen(study: Study, task: str, models: int | None, seeds: int | None) -> list[Cell]:
    """The cells of a task, of the first models and seeds."""
    named = study.models[:models], study.seeds[:seeds]
    return [c for c in study.cells if task in c.task and c.model in named[0] and c.seed in named[1]]


def ran(study: Study, cells: list[Cell], run: Path, engine: str) -> float:
    """Seconds that the cells took on an engine with two workers; of a run that was stopped, its last part."""
    run_study(study, run, cells, engine_of(engine, 2))
    seconds: float = read_manifest(run)["seconds"]
    return seconds


def main(wanted: argparse.Namespace) -> None:
    """Both runs, and a line."""
    study = load_study(wanted.study)
    cells = chosen(study, wanted.task, wanted.models, wanted.seeds)
    here, there = (wanted.runs / f"{wanted.study}-{engine}" for engine in ("local", "ray"))
    alone = ran(study, cells, here, "local")
    with two_nodes() as cluster:
        beside = ran(study, cells, there, f"ray:{cluster.address}")
    assert_same_tables(here, there)
    tables = len(list((here / "tables").iterdir()))
    seen = f"{len(cells)} of {len(study.cells)} cells, {tables} tables equal"
    line = f"{wanted.study}: {seen}; {alone:.0f} s here, {beside:.0f} s on Ray"
    print(line)
    wanted.log.parent.mkdir(parents=True, exist_ok=True)
    with wanted.log.open("a", encoding="utf8") as log:
        log.write(f"{line}\n")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m tools.engines")
    asked.add_argument("study")
    asked.add_argument("--task", default="", help="part of a task's name")
    asked.add_argument("--models", type=int, help="how many of the first models")
    asked.add_argument("--seeds", type=int, help="how many of the first seeds")
    asked.add_argument("--runs", type=Path, default=Path("runs/engines"))
    asked.add_argument("--log", type=Path, default=Path("results/engines/log.txt"))
    main(asked.parse_args())
