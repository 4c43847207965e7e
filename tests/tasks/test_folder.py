"""The data folder: good data sets, malformed lines with their numbers, folders that are not there."""

from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError
from exegete.tasks.catalogue import load_task
from tests.tasks.task_files import data_set, labelled

ROWS = labelled(4)


def test_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "sst", monkeypatch, train=ROWS, dev=ROWS[:2], test=ROWS[1:])
    task = load_task("sst:train_limit=3")
    assert {name: len(found) for name, found in task.splits.items()} == {"train": 3, "dev": 2, "test": 3}
    assert (task.name, task.origin) == ("sst:train_limit=3", "EXEGETE_DATA/sst")


def test_rationales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[dict[str, Any]] = [
        {"text": "so bad\nit hurts .", "label": "0", "rationale": [[1, 2], [3, 4]]},
        {"text": "good", "label": "1"},
    ]
    data_set(tmp_path, "eraser_movies", monkeypatch, train=marked, dev=marked, test=marked)
    example = load_task("eraser_movies").split("train")[0]
    assert [example.words[i] for i in example.rationale] == ["bad", "hurts"]


def test_subset_keeps_rows_and_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row | {"jw": int(i != 1)} for i, row in enumerate(ROWS)]
    data_set(tmp_path, "imdb", monkeypatch, train=rows, dev=rows, test=rows)
    assert [e.id for e in load_task("imdb:subset=jw").split("train")] == [0, 2, 3]
    assert [e.id for e in load_task("imdb").split("train")] == [0, 1, 2, 3]


def test_halves_together_are_cut_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which half a text came from says nothing about where it goes; nothing is lost, nothing is there twice."""
    rows = [{"text": f"message {i}", "label": str(i % 2)} for i in range(400)]
    data_set(tmp_path, "20news_sports", monkeypatch, train=rows[:200], dev=rows[200:240], test=rows[240:])
    task = load_task("20news_sports:halves=together,min_df=1")
    sizes = {split: len(found) for split, found in task.splits.items()}
    assert sum(sizes.values()) == len({e.words for found in task.splits.values() for e in found}) == 400
    assert abs(sizes["train"] - 256) < 30
    assert abs(sizes["test"] - 80) < 25
    late = sum(int(e.words[1]) >= 240 for e in task.split("train"))
    assert 70 < late < 135  # about 0.64 of the 160 texts that were test


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{oops", "line 2: not JSON"),
        ('["text", "1"]', "line 2: not a JSON object"),
        ({"label": "1"}, "line 2: there is no 'text'"),
        ({"text": "good"}, "line 2: there is no 'label'"),
        ({"text": "good", "label": None}, "line 2: there is no 'label'"),
        ({"text": "good", "label": ["1"]}, "line 2: 'label' is not a class"),
        ({"text": 7, "label": "1"}, "line 2: 'text' is not a text"),
        ({"text": "good", "label": "1", "rationale": [1, 1.5]}, "line 2: 'rationale' is not a list"),
        ({"text": "good", "label": "1", "rationale": [0, 0]}, "line 2: 'rationale' names a word twice"),
        ({"text": "good", "label": "1", "rationale": [["a", "b"]]}, "line 2: 'rationale' is not a list"),
        ({"text": "good", "label": "1", "rationale": [[0, 2]]}, "row 2 of dev: the rationale span [0, 2)"),
    ],
)
def test_malformed_lines(line: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "sst", monkeypatch, train=ROWS, dev=[ROWS[0], line], test=ROWS)
    with pytest.raises(ExegeteError) as raised:
        load_task("sst")
    assert sentence in str(raised.value)
    assert "row 2" in sentence or "dev.jsonl.gz" in str(raised.value)


def test_a_file_that_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = data_set(tmp_path, "sst", monkeypatch, train=labelled(500), dev=ROWS, test=ROWS)
    whole = (home / "train.jsonl.gz").read_bytes()
    (home / "train.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExegeteError, match=r"train\.jsonl\.gz is not a whole gzip file"):
        load_task("sst")


def test_a_file_that_is_no_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = data_set(tmp_path, "sst", monkeypatch, train=ROWS)
    (home / "train.jsonl.gz").write_text("plain")
    with pytest.raises(ExegeteError, match="is not a whole gzip file"):
        load_task("sst")


def test_no_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "sst", monkeypatch, test=ROWS)
    with pytest.raises(ExegeteError, match=r"EXEGETE_DATA/sst has no train\.jsonl\.gz"):
        load_task("sst")


def test_no_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "sst", monkeypatch, train=labelled(200), test=ROWS)
    assert "no dev split" in load_task("sst").notes[0]


def test_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    with pytest.raises(
        ExegeteError, match=r"task 'sst' is not here: set EXEGETE_DATA to a folder that holds sst/train\.jsonl\.gz"
    ):
        load_task("sst")


def test_set_to_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the wheel answers then: the same name would silently mean other data."""
    monkeypatch.setenv("EXEGETE_DATA", str(tmp_path / "nowhere"))
    for name in ("sst", "imdb"):
        with pytest.raises(ExegeteError, match="which is not a folder: correct it or unset it"):
            load_task(name)
