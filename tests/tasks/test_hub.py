"""The hub: local folders that `datasets` loads, offline; and what is said when it can't."""

import sys
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.catalogue import load_task
from tests.tasks.task_files import labelled

datasets = pytest.importorskip("datasets", reason="datasets is not installed")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def stored(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    """A data set as a folder of parquet files, with the features that hub data sets have."""
    for split, rows in splits.items():
        table = datasets.Dataset.from_list(rows)
        if "label" in rows[0]:
            table = table.cast_column("label", datasets.ClassLabel(names=["negative", "positive"]))
        (folder / "data").mkdir(parents=True, exist_ok=True)
        table.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def numbered(count: int, prefix: str) -> list[dict[str, Any]]:
    return [row | {"label": int(row["label"])} for row in labelled(count, prefix)]


def test_class_names_splits_and_hidden_labels(tmp_path: Path) -> None:
    home = stored(
        tmp_path / "set",
        train=numbered(200, "a"),
        validation=numbered(10, "b"),
        test=[{"text": f"hidden {i}", "label": -1} for i in range(5)],
        unsupervised=[{"text": "more", "label": -1}],
    )
    task = load_task(f"hf:{home}")
    assert task.labels == ("negative", "positive")
    assert len(task.split("dev")) == 10
    assert len(task.split("train")) + len(task.split("test")) == 200
    assert task.origin == f"hf:{home}"
    assert "splits unsupervised were not read" in task.notes[0]
    assert task.notes[1] == "5 rows of test have no class and were left out."
    assert "no test split" in task.notes[2]


def test_other_columns_and_plain_labels(tmp_path: Path) -> None:
    rows = [{"sentence": f"text {i}", "stars": i % 3} for i in range(300)]
    home = stored(tmp_path / "set", train=rows)
    task = load_task(f"hf:{home}:text=sentence,label=stars")
    assert task.labels == ("0", "1", "2")
    with pytest.raises(UsageError, match=r"'sentense': did you mean 'sentence'\? \(write text=COLUMN\)"):
        load_task(f"hf:{home}:text=sentense,label=stars")
    with pytest.raises(UsageError, match=r"column 'stars' of .* is no text"):
        load_task(f"hf:{home}:text=stars,label=stars")


def test_unknown_configuration(tmp_path: Path) -> None:
    home = stored(tmp_path / "set", train=numbered(4, "a"))
    with pytest.raises(ExegeteError, match=r"can't be loaded: .*other"):
        load_task(f"hf:{home}:config=other")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ConnectionError("no route"), "the hub can't be reached"),
        (datasets.exceptions.DatasetNotFoundError("gone"), "there is no such data set"),
        (ValueError("a script\nis needed"), "can't be loaded: a script is needed"),
    ],
)
def test_what_can_go_wrong(error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(ExegeteError, match=f"hf:owner/name.*{sentence}"):
        load_task("hf:owner/name")


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ExegeteError, match=r'needs the package datasets: pip install "transformers'):
        load_task("hf:owner/name")
