"""A Ray cluster of two nodes on this machine, and what tests do to it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from exegete.wings.cluster.nodes import library

MEMORY = 100_000_000  # bytes of a node's object store: only keys go through it
TIMES = ("costs", "leaderboard")  # tables with milliseconds, which no two runs share


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A head and one more, a CPU each; nothing is left of them."""
    library()  # before all else of Ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        yield cluster
    finally:
        cluster.shutdown()


def at_work() -> list[int]:
    """The processes below this one that do a piece on Ray now."""
    parents: dict[int, int] = {}
    working = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().startswith(b"ray::Hand.work"):
                working.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return sorted(pid for pid in working if _is_below(pid, os.getpid(), parents))


def _is_below(pid: int, top: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != top:
        pid = parents[pid]
    return pid == top


def kill(pid: int) -> bool:
    """Kill a process at once; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def assert_same_tables(one: Path, other: Path) -> None:
    """Byte for byte; where times are told, all else."""
    names = sorted(path.name for path in (one / "tables").iterdir())
    assert names == sorted(path.name for path in (other / "tables").iterdir())
    assert names
    for name in names:
        first, second = one / "tables" / name, other / "tables" / name
        if any(word in name for word in TIMES):
            assert_frame_equal(*(pl.read_csv(path).drop("ms", strict=False) for path in (first, second)))
        else:
            assert first.read_bytes() == second.read_bytes(), name
