"""The catalogue: what is listed, what listing costs, where a task is looked up."""

import subprocess
import sys
from pathlib import Path

import pytest

from exegete.tasks.catalogue import DEFAULTS, TASKS, load_task
from exegete.tasks.settings import SampleSettings
from tests.tasks.task_files import data_set, labelled

NAMES = [
    *("rotten_tomatoes", "imdb", "sst", "sst_jw", "sst5", "20news_sports", "agnews", "agnews4", "eraser_movies"),
    *("snli", "babi", "stories", "multi30k", "toy_translation"),
]


def test_every_name_has_a_summary_and_defaults_that_hold() -> None:
    assert list(TASKS) == NAMES
    for name, entry in TASKS.items():
        assert entry.summary
        assert "\n" not in entry.summary
        assert issubclass(entry.load(), SampleSettings)
        entry.load()(**DEFAULTS.get(name, {}))


def test_listing_imports_nothing_heavy() -> None:
    heavy = ["torch", "polars", "datasets", "numpy"]
    code = f"import sys, exegete.tasks.catalogue as c; print([m for m in {heavy} if m in sys.modules], *c.TASKS)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["[]", *NAMES]


def test_the_data_folder_comes_before_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = labelled(6, "Own")
    data_set(tmp_path, "imdb", monkeypatch, train=rows, dev=rows, test=rows)
    task = load_task("imdb")
    assert task.origin == "EXEGETE_DATA/imdb"
    assert (task.tokenizer, task.lower, task.min_df) == ("words", True, 10)
    assert task.split("train")[0].words == ("own", "number", "0")


def test_settings_come_before_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = labelled(6, "Own")
    data_set(tmp_path, "sst", monkeypatch, train=rows, dev=rows, test=rows)
    assert load_task("sst:lower=false").split("train")[0].words == ("Own", "number", "0")
