"""SNLI: premise and hypothesis from the data folder or the hub, with a note where training data is a sample."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError
from exegete.tasks.catalogue import load_task
from exegete.tasks.vocabulary import fit_vocabulary
from tests.tasks.task_files import data_set

LABELS = ("entailment", "neutral", "contradiction")


def rows(count: int) -> list[dict[str, Any]]:
    return [{"premise": f"Men, {i}.", "hypothesis": "It's Good", "label": LABELS[i % 3]} for i in range(count)]


def test_from_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "snli", monkeypatch, train=rows(9), dev=rows(3), test=rows(3))
    task = load_task("snli:train_limit=6")
    assert (task.kind, task.labels) == ("pair", tuple(sorted(LABELS)))
    assert (task.tokenizer, task.lower, task.min_df) == ("words", True, 3)
    assert task.split("test")[0].texts == (("men", ",", "0", "."), ("it", "'s", "good"))
    assert task.notes == ("The training data are a sample: 9 of the 549,367 pairs of SNLI.",)
    assert task.origin == "EXEGETE_DATA/snli"


def test_a_line_without_hypothesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "snli", monkeypatch, train=[*rows(3), {"premise": "a", "label": "neutral"}], dev=rows(3))
    with pytest.raises(ExegeteError, match=r"train.jsonl.gz, line 4: there is no 'hypothesis'"):
        load_task("snli")


def test_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    numbered = [row | {"label": LABELS.index(row["label"])} for row in rows(9)]
    table = datasets.Dataset.from_list([*numbered, {"premise": "a", "hypothesis": "b", "label": -1}])
    table = table.cast_column("label", datasets.ClassLabel(names=list(LABELS)))
    asked = []

    def load(name: str, config: object) -> dict[str, Any]:
        asked.append(name)
        return {"train": table, "validation": table, "test": table}

    monkeypatch.setattr(datasets, "load_dataset", load)
    task = load_task("snli:explain=question")
    assert asked == ["stanfordnlp/snli"]
    assert task.labels == tuple(sorted(LABELS))
    assert task.split("dev")[0].words == ("it", "'s", "good")
    assert task.origin == "hf:stanfordnlp/snli"
    assert task.notes[0] == "1 rows of train have no class and were left out."


def test_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ExegeteError, match=r"task 'snli' is not here: set EXEGETE_DATA .*pip install"):
        load_task("snli")


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set")
def test_the_real_pairs() -> None:
    task = load_task("snli")
    assert [len(task.split(name)) for name in ("train", "dev", "test")] == [19_999, 9_842, 9_824]
    assert task.labels == ("contradiction", "entailment", "neutral")
    assert "a sample: 19,999 of the 549,367" in task.notes[0]
    assert 2_000 < len(fit_vocabulary(task.split("train"), task.min_df)) < 20_981  # the whole has 20,981
