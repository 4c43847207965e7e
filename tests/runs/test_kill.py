"""kill -9 in training, scoring or an experiment, then the same command: it goes on, and the tables are the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.studied import reviews

pytestmark = pytest.mark.slow

MOMENTS: dict[str, str] = {
    "training": "stages/train-*/checkpoint.partial/training.safetensors",
    "scoring": "stages/score-*/part-00001.parquet",
    "experiment": "stages/experiment-*/part-00001.parquet",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough texts that every stage has several shards."""
    folder = tmp_path_factory.mktemp("study")
    task = f"file:{reviews(folder / 'reviews.csv', 1000)}:text=review,label=sentiment,tokenizer=whitespace"
    path = folder / "mine.toml"
    path.write_text(
        f'tasks = ["{task}"]\nmodels = ["bilstm:size=8,hidden=8"]\nseeds = [0, 1]\nsplit = "train"\n'
        "[training]\nepochs = 3\n"
        '[[experiments]]\nname = "agreement"\nks = ["1", "3"]\ndraws = 5\n'
    )
    return path


def start(study: Path, out: Path, workers: int) -> "subprocess.Popen[bytes]":
    words = ["run", str(study), "--out", str(out), "--quiet", "--workers", str(workers)]
    command = [sys.executable, "-c", "from exegete.cli import main; main()", *words]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(there: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 120
    while not there():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.fixture(scope="module")
def undisturbed(study: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert start(study, out, 1).wait() == 0
    return pl.read_parquet(out / "tables" / "agreement.parquet")


@pytest.mark.parametrize(("moment", "workers"), [("training", 1), ("scoring", 2), ("experiment", 2), ("experiment", 1)])
def test_a_killed_run_goes_on(
    study: Path, undisturbed: pl.DataFrame, tmp_path: Path, moment: str, workers: int
) -> None:
    out = tmp_path / "cut"
    process = start(study, out, workers)
    wait_for(lambda: any(out.glob(MOMENTS[moment])), process)
    os.kill(process.pid, signal.SIGKILL)  # the parent alone: its workers must notice
    process.wait()
    assert not (out / "manifest.json").exists()
    time.sleep(1.5)  # workers look for their parent twice a second
    assert start(study, out, workers).wait() == 0
    assert_frame_equal(pl.read_parquet(out / "tables" / "agreement.parquet"), undisturbed)
    assert (out / "manifest.json").exists()
    assert not list(out.rglob(".*.parquet.*"))
