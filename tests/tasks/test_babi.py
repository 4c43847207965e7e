"""bAbI: statements are sentences, supporting facts are marked; from the data folder and from the archive on the hub."""

import io
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks import babi_archive
from exegete.tasks.catalogue import load_task
from exegete.tasks.sentences import split_sentences
from exegete.tasks.vocabulary import fit_vocabulary
from tests.tasks.task_files import data_set

TOLD = ["Mary moved to the bathroom.", "John went to the hallway.", "Mary went back to the garden."]
ROWS = [
    {"passage": TOLD[:2], "question": "Where is Mary?", "label": "bathroom", "supporting": [0]},
    {"passage": TOLD, "question": "Where is John? ", "label": "hallway", "supporting": [1]},
]
FILE = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Mary went back to the garden.
5 Where is John? \thallway\t2
"""


def test_statements_and_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "babi/en-10k/qa1", monkeypatch, train=ROWS, dev=ROWS, test=ROWS)
    task = load_task("babi")
    assert (task.kind, task.labels, task.lower) == ("pair", ("bathroom", "hallway"), False)
    assert task.origin == "EXEGETE_DATA/babi/en-10k/qa1"
    assert task.notes == ("The training data are a part: 4 of the 10,000 questions of train and dev together.",)
    e = task.split("train")[1]
    assert e.texts[1] == ("Where", "is", "John")
    assert [" ".join(each) for each in split_sentences(e.words)] == [text.replace(".", " .") for text in TOLD]
    assert [e.words[i] for i in e.rationale] == ["John", "went", "to", "the", "hallway", "."]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"supporting": [2]}, r"line 2: 'supporting' is not a list of places among 2 statements: \[2\]"),
        ({"supporting": "0"}, "line 2: 'supporting' is not a list"),
        ({"passage": "Mary moved."}, "line 2: 'passage' is not a list of statements"),
        ({"question": None}, "line 2: 'question' and 'label' are not two strings"),
        ({"label": 3}, "line 2: 'question' and 'label' are not two strings"),
    ],
)
def test_bad_rows(bad: Mapping[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "babi/en/qa2", monkeypatch, train=[ROWS[0], {**ROWS[0], **bad}], dev=ROWS, test=ROWS)
    with pytest.raises(ExegeteError, match=sentence):
        load_task("babi:task=2,size=1k")


def test_an_empty_question_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "babi/en/qa1", monkeypatch, train=[*ROWS, {**ROWS[0], "question": "?"}], dev=ROWS, test=ROWS)
    assert "1 empty question was left out of train." in load_task("babi:size=1k").notes


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("task=4", "task is 1, 2 or 3, not 4"),
        ("task=first", "task"),
        ("size=5k", "'10k' or '1k'"),
        ("number=2", "unknown setting of task 'babi' 'number'"),
        ("tsk=2", "did you mean 'task'"),
    ],
)
def test_wrong_words(settings: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_task(f"babi:{settings}")
    assert sentence in str(raised.value)


def archive(path: Path, **members: str) -> Path:
    """An archive as the hub has it."""
    with tarfile.open(path, "w:gz") as files:
        for name, text in members.items():
            member = tarfile.TarInfo(f"tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_{name}.txt")
            member.size = len(text.encode())
            files.addfile(member, io.BytesIO(text.encode()))
    return path


def online(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    monkeypatch.setattr(hub, "hf_hub_download", lambda *_, **__: str(path))


def test_the_archive_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online(archive(tmp_path / "a.tar.gz", train=FILE * 20, test=FILE), monkeypatch)
    task = load_task("babi")
    assert [len(task.split(name)) for name in ("train", "dev", "test")] == [34, 6, 2]  # 17, 3 and 1 stories
    assert task.origin == "hf:facebook/babi_qa"
    assert task.notes == (babi_archive.NOTE,)
    e = task.split("test")[1]
    assert e.texts == (tuple(" ".join(TOLD).replace(".", " .").split()), ("Where", "is", "John"))
    assert [e.words[i] for i in e.rationale] == ["John", "went", "to", "the", "hallway", "."]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 Mary left.\n2 Where is Mary?\tgarden\t9\n", "_train.txt, line 2: a question is followed by its answer"),
        ("1 Mary left.\n2 Where is Mary?\tgarden\n", "_train.txt, line 2: a question is followed by its answer"),
    ],
)
def test_a_broken_archive(text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online(archive(tmp_path / "a.tar.gz", train=text, test=FILE), monkeypatch)
    with pytest.raises(ExegeteError, match=sentence):
        load_task("babi")
    online(archive(tmp_path / "a.tar.gz", train=FILE), monkeypatch)
    with pytest.raises(ExegeteError, match=r"a.tar.gz has no en-10k/qa1_…_test.txt"):
        load_task("babi")
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(ExegeteError, match=r"is not the archive of bAbI"):
        load_task("babi")


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ExegeteError, match=r"set EXEGETE_DATA to .*babi/en-10k/qa3.*stories:facts=3.*pip install"):
        load_task("babi:task=3")


def test_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    monkeypatch.delenv("EXEGETE_DATA", raising=False)

    def offline(*_: object, **__: object) -> str:
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(hub, "hf_hub_download", offline)
    with pytest.raises(ExegeteError, match=r"task 'babi' is not here: .*can't be loaded: no route to the hub"):
        load_task("babi")


data = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set"),
]


@pytest.mark.parametrize(
    ("settings", "sizes", "words"),
    [
        pytest.param("task=1", (8500, 1500, 1000), 24, marks=data),
        pytest.param("task=2", (8500, 1500, 1000), 38, marks=data),
        pytest.param("task=3", (1635, 290, 1000), 39, marks=data),
        pytest.param("task=1,size=1k", (850, 150, 1000), 24, marks=data),
        pytest.param("task=3,size=1k", (850, 150, 1000), 39, marks=data),
    ],
)
def test_the_real_tasks(settings: str, sizes: tuple[int, ...], words: int) -> None:
    """One sentence per statement, as many marked as the task says, and the vocabularies of Jain & Wallace."""
    task = load_task(f"babi:{settings}")
    facts = int(settings[5])
    assert tuple(len(task.split(name)) for name in ("train", "dev", "test")) == sizes
    assert task.labels == ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
    for e in (e for split in task.splits.values() for e in split):
        told = split_sentences(e.words)
        assert len(told) == e.words.count(".")
        assert all(each[-1] == "." and "." not in each[:-1] for each in told)
        assert sum(e.words[i] == "." for i in e.rationale) == facts
    assert len(fit_vocabulary(task.split("train"))) == words
    assert ("part" in " ".join(task.notes)) == (settings == "task=3")
