"""Cluster: what two workers are worth, on this machine and on Ray, and what handing out a piece takes; when idle.

    python benchmarks/cluster.py                       prints what was measured
    python benchmarks/cluster.py results/scheduling    also keeps it
    python benchmarks/cluster.py --small               tiny pieces: that nothing here has rotted

A piece is a whole cheap study: a BiLSTM that is trained, scored and asked in its worker. Efficiency is the time of one
worker of this machine's engine over workers × time, once all workers have done a first piece. Overhead is the time of
many pieces that do nothing, over their number. The bars: 0.85 a worker on `local`, 0.75 on `ray`, whose own processes
share the cores, and 30 ms a piece.
"""

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from cheap import nothing, piece, reviews
from common import SMALL
from exegete.base.files import write_json
from exegete.runs.engine import engine_of
from exegete.runs.engine.contract import Engine

PIECES, EMPTY = (4, 20) if SMALL else (12, 300)
TEXTS, EPOCHS = (60, 1) if SMALL else (800, 6)
BARS = {"local": 0.85, "ray": 0.75}
OVERHEAD = 30  # milliseconds a piece


def timed(engine: Engine, folder: Path) -> tuple[float, float]:
    """Seconds of all pieces, and of an empty one, once workers have started."""
    first = engine.workers
    list(engine.map(piece, [(str(folder), seed, EPOCHS) for seed in range(first)]))
    began = time.perf_counter()
    list(engine.map(piece, [(str(folder), first + seed, EPOCHS) for seed in range(PIECES)]))
    worked = time.perf_counter() - began
    began = time.perf_counter()
    list(engine.map(nothing, list(range(EMPTY))))
    return worked, (time.perf_counter() - began) / EMPTY


def measured(folder: Path) -> list[dict[str, float | str]]:
    """Both engines with one worker and with two."""
    found: list[dict[str, float | str]] = []
    alone = 0.0
    for name in ("local", *(["ray"] if find_spec("ray") else [])):
        for workers in (1, 2):
            with engine_of(name, workers) as engine:
                seconds, empty = timed(engine, folder)
            alone = alone or seconds
            efficiency = alone / (workers * seconds)
            line = {"engine": name, "workers": workers, "seconds": seconds, "efficiency": efficiency}
            found.append(line | {"overhead_ms": 1000 * empty})
            share = f"{efficiency:.2f} a worker  {1000 * empty:.1f} ms a piece"
            print(f"{name:6} {workers} workers  {seconds:6.1f} s  {share}", flush=True)
    return found


def main(folder: Path | None) -> None:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    with TemporaryDirectory() as home:  # workers import what they do from here
        reviews(Path(home) / "reviews.csv", TEXTS)
        found = measured(Path(home))
    if folder is not None:
        write_json(folder / "overhead.json", {"pieces": PIECES, "empty": EMPTY, "measured": found})
    if len(found) == 2:
        print("Ray is not installed: only the engine of this machine was timed")
    slow = [
        each for each in found
        if float(each["efficiency"]) < BARS[str(each["engine"])] or float(each["overhead_ms"]) > OVERHEAD
    ]  # fmt: skip
    if slow and not SMALL:
        sys.exit(f"below the bar: {', '.join(str(each['engine']) + ' ' + str(each['workers']) for each in slow)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
