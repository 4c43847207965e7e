"""A disk that is full, and one that can't be written: one sentence, and a run that goes on when there is room."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from tests.runs.clustered import assert_same_tables
from tests.studied import reviews, small_study

pytestmark = pytest.mark.slow
SIZES = ("100k", "300k", "500k")  # a study of two cells fills each at another stage


def mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, which only somebody who may mount can have."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "size=100k"):
        pytest.skip("needs a small disk, and this user may not mount one")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(disk: Path, tmp_path: Path) -> None:
    agreement = {"name": "agreement", "ks": ["1"], "topk": ["fagin"], "draws": 3}
    study = small_study("small", reviews(tmp_path / "reviews.csv"), ["bilstm:size=8,hidden=8"], agreement)
    expected = run_study(study, tmp_path / "undisturbed", engine=LocalEngine(1))
    for size in SIZES:
        mounted(disk, f"remount,size={size}")
        with pytest.raises(ExegeteError, match=r"no space left for .*: free some and run the same command again"):
            run_study(study, disk / "run", engine=LocalEngine(2))
    mounted(disk, "remount,size=20m,ro")
    with pytest.raises(ExegeteError, match=r"may not write .*: choose another place"):
        run_study(study, disk / "run", engine=LocalEngine(2))
    mounted(disk, "remount,size=20m,rw")
    assert_same_tables(expected, run_study(study, disk / "run", engine=LocalEngine(2)))
