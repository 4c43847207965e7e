"""Store: a run's stages on disk. A stage is a folder; its `stage.json`, written last, proves that it is complete."""

import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import polars as pl

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.files import read_json, write_json
from exegete.base.lease import hold_lease
from exegete.base.parquet import checksum, write_parquet

DONE = "stage.json"
PARTS = "parts"  # of a complete stage: its files, and their checksums


@dataclass
class Stage:
    """One keyed piece of work and its folder."""

    folder: Path
    facts: dict[str, Any]
    shards: int | None = None  # how many are wanted of a stage that grows; others are complete once and for all
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> bool:
        """Whether it is complete."""
        if not (self.folder / DONE).is_file():
            return False
        return self.shards is None or len(self.result().get(PARTS, ())) >= self.shards

    @contextmanager
    def held(self, number: int | None = None) -> Iterator[None]:
        """One process at a time: two cells may want the same model, and the second waits for the first to train it.

        With a number: of that shard, so that several processes work on a stage side by side.
        """
        shard = "" if number is None else f".{number}"
        with hold_lease(self.folder.with_name(f".{self.folder.name}{shard}.lock")):
            yield

    def finish(self, **found: Any) -> None:
        """Say that it is complete, and what is in each of its parts."""
        measured = {"seconds": round(time.monotonic() - self.started, 2), "peak_mb": peak_memory()}
        parts = {path.relative_to(self.folder).as_posix(): checksum(path) for path in files_in(self.folder)}
        write_json(self.folder / DONE, self.facts | found | measured | {PARTS: parts})

    def result(self) -> dict[str, Any]:
        """What a complete stage said of itself."""
        facts: dict[str, Any] = read_json(self.folder / DONE, "stage")
        return facts


def is_address(place: object) -> TypeGuard[str]:
    """Whether a run is at an address (`s3://…`) rather than in a folder.

    >>> [is_address(place) for place in ("s3://bucket/run", "file:///tmp/run", "runs/mine", "C:/runs")]
    [True, True, False, False]
    """
    return isinstance(place, str) and re.match(r"[a-z][a-z0-9+:]+://", place) is not None


def refuse_address(folder: Path) -> None:
    """What only works in folders says so: a file of this name would be made here, unseen."""
    scheme = re.match(r"([a-z][a-z0-9]+):/", str(folder))  # a path has one slash of two
    if scheme:
        raise UsageError(
            f"a folder is wanted here, not an address at {scheme[1]}://: `run`, `audit`, `report`, `explain` take one"
        )


def stage(run: Path, kind: str, key: str, shards: int | None = None, /, **facts: Any) -> Stage:
    """The stage of a kind with this key; with `shards`, one that may grow, and of which so many are wanted."""
    return Stage(run / "stages" / f"{kind}-{key}", {"kind": kind, "key": key} | facts, shards)


def peak_memory() -> int:
    """Megabytes that this process has used at most."""
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def stage_costs(run: Path) -> dict[str, dict[str, float]]:
    """By kind of stage: how many are complete, their seconds, and the most memory that a process had at the end of one.

    A worker stays, so its peak is that of all that it has done.
    """
    found: dict[str, dict[str, float]] = {}
    for done in sorted((run / "stages").glob(f"*/{DONE}")):
        facts = read_json(done, "stage")
        told = found.setdefault(done.parent.name.rpartition("-")[0], {"count": 0, "seconds": 0.0, "peak_mb": 0})
        told["count"] += 1
        told["seconds"] = round(told["seconds"] + facts.get("seconds", 0.0), 2)
        told["peak_mb"] = max(told["peak_mb"], facts.get("peak_mb", 0))
    return found


def files_in(folder: Path) -> list[Path]:
    """The parts of a stage, those of its checkpoint included; neither locks nor what is half written."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != DONE)
    return [path for path in found if not any(name.startswith(".") for name in path.relative_to(folder).parts)]


def part(folder: Path, number: int) -> Path:
    """The file of one shard."""
    return folder / f"part-{number:05d}.parquet"


def write_shards(
    folder: Path,
    shards: Sequence[Any],
    compute: Callable[[Any], pl.DataFrame],
    tell: Callable[[int, int], None],
    only: int | None = None,
) -> bool:
    """One parquet file per shard, or that of one only; those that are there already are not computed again.

    Returns whether all of them are there now.
    """
    for number in range(len(shards)) if only is None else (only,):
        path = part(folder, number)
        if not path.is_file():
            write_parquet(path, compute(shards[number]))
        tell(number + 1, len(shards))
    return has_shards(folder, len(shards))


def has_shards(folder: Path, count: int) -> bool:
    """Whether a stage has all its parts, complete or not."""
    return all(part(folder, number).is_file() for number in range(count))


def read_shards(folder: Path) -> list[Path]:
    """The parts of a complete stage, in order."""
    if not (folder / DONE).is_file():
        raise ExegeteError(f"{folder} is not complete: run the study again, it will go on where it stopped")
    return sorted(folder.glob("part-*.parquet"))
