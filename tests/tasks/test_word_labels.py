"""Word labels: the words that lean as their sentence does become its weak rationale, and nothing else changes."""

import os
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError
from exegete.tasks.catalogue import load_task
from exegete.tasks.word_labels import NOTE
from tests.tasks.task_files import data_set


def row(label: str, fine: object, word_labels: object) -> dict[str, Any]:
    return {"text": "so bad yet so good", "label": label, "fine": fine, "word_labels": word_labels}


@pytest.mark.parametrize(("fine", "marked"), [(0, ["bad"]), (1, ["bad"]), (2, []), (3, ["good"]), (4, ["good"])])
def test_words_that_lean_as_the_sentence(
    fine: int, marked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("0", fine, "21224"), row("1", 4, "22222")]
    data_set(tmp_path, "sst", monkeypatch, train=rows, dev=rows, test=rows)
    task = load_task("sst")
    first, second = task.split("test")
    assert [first.words[i] for i in first.rationale] == marked
    assert (first.label, first.words, second.rationale) == (0, ("so", "bad", "yet", "so", "good"), ())
    assert task.notes == (NOTE,)


def test_a_rationale_of_its_own_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row("0", 1, "21224") | {"rationale": [[0, 1]]}, row("1", 4, "22222") | {"rationale": []}]
    data_set(tmp_path, "sst", monkeypatch, train=rows, dev=rows, test=rows)
    assert load_task("sst").split("test")[0].rationale == (0,)
    assert load_task("sst").notes == ()


@pytest.mark.parametrize(
    ("fine", "grades", "sentence"),
    [
        (1, "2122", "line 1: 'word_labels' is not one digit from 0 to 4 per word"),
        (1, "21229", "line 1: 'word_labels' is not one digit"),
        (1, [2, 1, 2, 2, 4], "line 1: 'word_labels' is not one digit"),
        (None, "21224", "line 1: 'fine', the sentence's own grade, is not a number from 0 to 4"),
        ("1", "21224", "line 1: 'fine'"),
    ],
)
def test_malformed(
    fine: object, grades: object, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("0", 1, "21224"), row("1", 4, "22222")]
    data_set(tmp_path, "sst", monkeypatch, train=rows, dev=[row("0", fine, grades)], test=rows)
    with pytest.raises(ExegeteError) as raised:
        load_task("sst")
    assert sentence in str(raised.value)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set")
def test_the_real_sst() -> None:
    """Counted from the raw file: 1,539 of 1,821 sentences hold a word that leans their way."""
    test = load_task("sst").split("test")
    marked = [e for e in test if e.rationale]
    assert len(marked) == 1539
    wasabi = test[0]
    assert [wasabi.words[i] for i in wasabi.rationale] == ["fun", "good"]
