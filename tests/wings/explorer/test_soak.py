"""Clients who drag at once get answers, and the server's memory stays as it is; and a leak would be seen."""

from pathlib import Path

import polars as pl
import pytest
from tools.soak_explorer import drawn, growth, soaked

SECONDS, CLIENTS, MOST = 20, 6, 20.0  # megabytes


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_memory_stays_flat(folders: tuple[Path, Path]) -> None:
    curve = soaked(str(folders[0]), CLIENTS, SECONDS, pause=0.01, every=0.5)
    last = curve.row(-1, named=True)
    assert last["errors"] == 0
    assert last["answers"] > 20 * CLIENTS
    assert last["workers_mb"] > last["server_mb"] > 0
    assert abs(growth(curve)) < MOST


def curve_of(megabytes: list[float]) -> pl.DataFrame:
    seconds = [float(second) for second in range(len(megabytes))]
    return pl.DataFrame({"seconds": seconds, "server_mb": megabytes, "workers_mb": [100.0] * len(megabytes)})


def test_growth_is_what_comes_after_warming_up() -> None:
    assert growth(curve_of([50.0] * 5 + [80.0] * 20)) == 0
    leak = growth(curve_of([50.0] * 5 + [80.0 + second for second in range(20)]))
    assert leak == pytest.approx(15)  # medians of the first and last four of nineteen, a megabyte a second


def test_the_curve_is_drawn() -> None:
    assert {"server", "workers"} <= {row["process"] for row in drawn(curve_of([1.0, 2.0])).data.to_dict()["values"]}
