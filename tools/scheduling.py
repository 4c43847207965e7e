"""How many workers can a study keep busy? `python -m tools.scheduling FOLDER [RUN]` simulates, and keeps what it found.

Pieces are as long as those of a real run (RUN, whose stages say how long they took; without one, those kept in FOLDER).
They are handed out as the engine on Ray does it: the longest first, a second one waiting at each worker while there are
more pieces than workers. The driver deals with one answer at a time, and a message takes a moment.

*Efficiency* is the work over workers × the time that it took. It can't be more than work ÷ (workers × longest piece),
nor more than what one driver hands out.
"""

import heapq
import json
import random
import sys
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

from exegete import __version__
from exegete.base.errors import UsageError
from exegete.base.files import write_json, write_text
from exegete.page.panels import series
from exegete.page.theme import figure, inline, to_svg
from exegete.runs.tables import write_csv

WORKERS = tuple(2**power for power in range(11))
PIECES = (40, 400, 4_000, 40_000)
DRIVER, MESSAGE = 0.001, 0.001  # seconds for an answer and for a message: assumed, where no overhead was measured
SHARED = ("model", "data", "split", "texts")  # of importances that were scored side by side


def pieces_of(run: Path) -> pl.DataFrame:
    """How long each piece of a run took: trainings, importances scored side by side, experiments."""
    took: dict[tuple[str, str], float] = defaultdict(float)
    for path in sorted((run / "stages").glob("*/stage.json")):
        facts = json.loads(path.read_text(encoding="utf8"))
        if facts["kind"] not in ("train", "score", "experiment"):
            continue
        shared = " ".join(str(facts.get(name)) for name in SHARED) if facts["kind"] == "score" else facts["key"]
        at = (facts["kind"], shared)
        took[at] = max(took[at], facts["seconds"])
    if not took:
        raise UsageError(f"{run} has no stages that tell how long they took")
    return pl.DataFrame([{"kind": kind, "seconds": seconds} for (kind, _), seconds in took.items()])


def makespan(pieces: Sequence[float], workers: int, driver: float = DRIVER, message: float = MESSAGE) -> float:
    """Seconds until all pieces are done.

    >>> makespan([3.0, 2.0, 1.0], 2, driver=0.0, message=0.0)
    3.0
    """
    left, queued = deque(pieces), [deque[float]() for _ in range(workers)]
    answers: list[tuple[float, int]] = []  # when, of whom
    now = last = 0.0  # until when the driver is busy; when the last piece was done
    for worker in range(min(workers, len(left))):
        now += driver
        heapq.heappush(answers, (now + message + left.popleft(), worker))
    for worker in range(workers):
        if len(left) > workers:
            now += driver
            queued[worker].append(left.popleft())
    while answers:
        last, worker = heapq.heappop(answers)
        now = max(now, last + message) + driver
        if queued[worker]:  # it begins at once; the driver sends another meanwhile
            heapq.heappush(answers, (last + queued[worker].popleft(), worker))
            if len(left) > workers:
                queued[worker].append(left.popleft())
        elif left:
            heapq.heappush(answers, (now + message + left.popleft(), worker))
    return last


def driver_of(folder: Path) -> float:
    """Seconds that the driver takes for a piece: as `benchmarks/cluster.py` measured it on Ray, or assumed."""
    kept = folder / "overhead.json"
    lines = json.loads(kept.read_text(encoding="utf8"))["measured"] if kept.is_file() else []
    return max((line["overhead_ms"] / 1000 for line in lines if line["engine"] == "ray"), default=DRIVER)


def simulated(seconds: Sequence[float], driver: float = DRIVER) -> pl.DataFrame:
    """Efficiency by number of pieces and of workers, with the bound that the longest piece sets."""
    rows = []
    for pieces in PIECES:
        drawn = sorted(random.Random(pieces).choices(list(seconds), k=pieces), reverse=True)
        work = sum(drawn)
        for workers in WORKERS:
            took = makespan(drawn, workers, driver)
            rows.append(
                {
                    "pieces": pieces,
                    "workers": workers,
                    "seconds": took,
                    "efficiency": work / (workers * took),
                    "bound": work / (workers * max(drawn[0], work / workers)),
                }
            )
    return pl.DataFrame(rows)


@figure(lambda table: table.with_columns(pl.format("{} pieces", "pieces").alias("of")), "nothing was simulated")
def efficiency(table: pl.DataFrame) -> alt.LayerChart:
    """Share of the workers' time that is work, by number of workers and pieces. Dashed: what the longest allows."""
    colour, shape = series("of", [f"{pieces} pieces" for pieces in PIECES])
    base = alt.Chart(inline(table)).encode(
        x=alt.X("workers:Q", scale=alt.Scale(type="log", base=2), title="workers"), color=colour
    )
    share = alt.Y("efficiency:Q", scale=alt.Scale(domain=[0, 1]), title="efficiency", axis=alt.Axis(format="%"))
    drawn = alt.LayerChart(
        layer=[
            base.mark_line().encode(y=share),
            base.mark_point(filled=True, size=40, opacity=1).encode(y=share, shape=shape),
            base.mark_line(strokeDash=[4, 3]).encode(y="bound:Q"),
        ]
    )
    return drawn.properties(width=480, height=280)


def main(folder: Path, run: Path | None) -> None:
    """Simulate, and write pieces, table, figure and where they come from."""
    if run is not None:
        write_csv(folder / "pieces.csv", pieces_of(run))
    pieces = pl.read_csv(folder / "pieces.csv")
    driver = driver_of(folder)
    table = simulated(pieces["seconds"].to_list(), driver)
    write_csv(folder / "scheduling.csv", table)
    write_text(folder / "scheduling.svg", to_svg(efficiency(table)))
    facts = {
        "exegete": __version__,
        "command": "python -m tools.scheduling results/scheduling",
        "simulated": True,
        "measured": "pieces.csv: seconds of the stages of a default audit on two cores, with two workers",
        "driver_seconds": driver,
        "driver": "measured: overhead.json" if (folder / "overhead.json").is_file() else "assumed",
        "assumed": {"message_seconds": MESSAGE},
    }
    write_json(folder / "manifest.json", facts)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("python -m tools.scheduling FOLDER [RUN]")
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else None)
