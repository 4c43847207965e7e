"""A task on disk is the task in memory: same texts, splits, notes and hash; and nothing of it stays in memory."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from exegete.base.errors import ExegeteError
from exegete.base.names import parse
from exegete.base.progress import heard
from exegete.models.build import build
from exegete.runs.shards import Shards
from exegete.tasks import cut_rows, spool, word_numbers
from exegete.tasks.batching import batches_of_one_length, collate, with_token_ids
from exegete.tasks.catalogue import load_task
from exegete.tasks.disk import Stored, column_of, index_of, some_of
from exegete.tasks.selection import choose_texts
from exegete.tasks.spool import SpooledTask, announcement
from exegete.tasks.vocabulary import fit_vocabulary
from exegete.training.fit import Fit
from exegete.training.objectives import class_weights
from exegete.training.settings import TrainingSettings

WORDS = ("a", "fine", "dull", "isn't", "it", "naïve", "film", "\ud800", ".")


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXEGETE_CACHE", str(tmp_path / "cache"))


def rows(n: int = 120, labels: tuple[str, ...] = ("10", "9")) -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    found: list[dict[str, Any]] = []
    for i in range(n):
        words = [WORDS[k] for k in draw.integers(0, len(WORDS), draw.integers(0, 12))]
        found.append(
            {"text": " ".join(words), "label": labels[i % len(labels)], "part": ("train", "dev", "val")[i % 3]}
        )
    return found


def jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def both(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[Any, Any]:
    held = load_task(name)
    monkeypatch.setattr(spool, "LARGE", 0)
    return held, load_task(name)


SETTINGS = (
    "",
    ":train_limit=20,test_limit=5",
    ":min_length=3,max_length=9,split_seed=4",
    ":legacy_length=true",
    ":split=part",
    ":tokenizer=characters,lower=false",
)


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_is_the_task_that_memory_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: str) -> None:
    held, spooled = both(monkeypatch, f"file:{jsonl(tmp_path / 'reviews.jsonl', rows())}{settings}")
    assert isinstance(spooled, SpooledTask)
    assert not isinstance(held, SpooledTask)
    for split in ("train", "dev", "test"):
        assert isinstance(spooled.split(split), Stored)
        assert tuple(spooled.split(split)) == held.split(split)
    for fact in ("hash", "labels", "written", "notes", "origin", "kind", "min_df", "lower", "tokenizer", "mean_length"):
        assert getattr(spooled, fact) == getattr(held, fact), fact
    assert held.labels == ("9", "10")


def test_pairs_rationales_and_unlabelled_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = [line for line in rows() if line["text"].count(" ") > 2]
    lines = [line | {"why": "is it good ?", "rationale": [[0, len(line["text"].split()) + 1]]} for line in long]
    lines[7]["label"] = None
    file = jsonl(tmp_path / "pairs.jsonl", lines)
    held, spooled = both(monkeypatch, f"file:{file}:question=why,explain=question,unlabelled=drop")
    assert [tuple(spooled.split(split)) for split in held.splits] == list(held.splits.values())
    assert (spooled.kind, spooled.hash, spooled.notes) == ("pair", held.hash, held.notes)
    assert any("no 'label'" in note for note in spooled.notes)
    assert any(column_of(split, "marked").any() for split in held.splits.values())
    for theirs, mine in zip(spooled.splits.values(), held.splits.values(), strict=True):
        known = index_of(mine)
        assert index_of(theirs)[list(known.dtype.names or ())].tolist() == known.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_of_every_kind_of_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame([line for line in rows() if "\ud800" not in line["text"]])
    path = tmp_path / f"reviews.{suffix}"
    frame.write_parquet(path, row_group_size=7) if suffix == "parquet" else frame.write_csv(path)
    held, spooled = both(monkeypatch, f"file:{path}")
    assert isinstance(spooled, SpooledTask)
    assert spooled.hash == held.hash


def test_it_is_read_once_and_again_when_the_file_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spool, "LARGE", 0)
    file = jsonl(tmp_path / "reviews.jsonl", rows())
    first = load_task(f"file:{file}")
    with monkeypatch.context() as closed:
        closed.setattr(spool, "_Spool", None)  # nobody may write
        assert load_task(f"file:{file}").hash == first.hash
    jsonl(file, rows(90))
    assert load_task(f"file:{file}").hash != first.hash


def test_what_takes_a_while_is_announced_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "reviews.jsonl", rows())
    spec, files = parse(f"file:{file}"), {"train": file}
    assert announcement(spec, files) == ""  # it is small
    monkeypatch.setattr(spool, "LARGE", 0)
    monkeypatch.setattr(spool, "SPEED", file.stat().st_size / 300)
    assert "reading reviews.jsonl (0 MB of text) takes about 5 minutes, once" in announcement(spec, files)
    load_task(f"file:{file}")
    assert announcement(spec, files) == ""


def test_what_is_wrong_is_said_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spool, "LARGE", 0)
    only = [{"text": "fine", "label": "a", "part": "train"}, {"text": "dull", "label": "b", "part": "test"}]
    file = jsonl(tmp_path / "reviews.jsonl", [*only * 3, {"text": "poor", "label": "a", "part": "dev"}])
    with pytest.raises(ExegeteError, match="class 'b' occurs in test but not in train"):
        load_task(f"file:{file}:split=part")
    with pytest.raises(ExegeteError, match="no text is left in"):
        load_task(f"file:{file}:split=part,min_length=9")
    assert not [path for path in (tmp_path / "cache" / "tasks").iterdir() if path.is_dir()]


def test_a_choice_reads_only_what_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    held, spooled = both(monkeypatch, f"file:{jsonl(tmp_path / 'reviews.jsonl', rows())}")
    train = spooled.split("train")
    few = choose_texts(train, 9)
    assert isinstance(few, Stored)
    assert tuple(few) == tuple(choose_texts(held.split("train"), 9))
    assert column_of(train, "id").tolist() == [e.id for e in held.split("train")]
    assert column_of(train, "length").tolist() == [len(e) for e in held.split("train")]
    assert tuple(some_of(train, np.array([5, 2]))) == (held.split("train")[5], held.split("train")[2])
    assert tuple(train[3:6]) == held.split("train")[3:6]
    assert tuple(pickle.loads(pickle.dumps(train))) == tuple(train)
    shards = Shards(train, most=20)
    assert [*shards] == [*Shards(held.split("train"), most=20)]
    assert shards[-1] == shards[len(shards) - 1]
    assert [e for shard in shards for e in shard] == sorted(held.split("train"), key=len)


def test_small_files_are_held(tmp_path: Path) -> None:
    assert not isinstance(load_task(f"file:{jsonl(tmp_path / 'reviews.jsonl', rows())}"), SpooledTask)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("settings", ["", ":question=why,explain=question"])
def test_batches_are_cut_by_the_index_and_training_is_that_of_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: str
) -> None:
    lines = [line | {"why": "is it " + "very " * (i % 4) + "good"} for i, line in enumerate(rows())]
    whole = [line for line in lines if line["text"]]
    held, spooled = both(monkeypatch, f"file:{jsonl(tmp_path / 'reviews.jsonl', whole)}{settings}")
    ours, theirs = held.split("train"), spooled.split("train")
    with monkeypatch.context() as unread:
        unread.setattr(Stored, "_read", None)  # nobody may read a text
        cut = list(batches_of_one_length(theirs, 8, 60, shuffle=3))
        weights = class_weights(theirs, 2)
    assert cut == list(batches_of_one_length(ours, 8, 60, shuffle=3))
    assert weights.tolist() == class_weights(ours, 2).tolist()
    spec = "pair:size=4,hidden=4" if settings else "bilstm:size=4,hidden=4"
    fits = [Fit(build(spec, task), task, TrainingSettings(epochs=2, batch=8), 0).run() for task in (held, spooled)]
    assert fits[0].history == fits[1].history
    with monkeypatch.context() as unread:
        unread.setattr(Stored, "_read", None)
        reader = fit_vocabulary(ours)
        by_ids = collate(some_of(with_token_ids(theirs, reader), np.array([5, 2, 9])), reader)
    by_words = collate([ours[5], ours[2], ours[9]], reader)
    for name, column in by_words._asdict().items():
        same = getattr(by_ids, name)
        assert torch.equal(same, column) if isinstance(column, torch.Tensor) else same == column, name
    other = fit_vocabulary(ours, wrap=True)
    assert torch.equal(collate(theirs, other).tokens, collate(ours, other).tokens)


def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are cut by two processes, a few rows at a time, and their list of words begins anew all the time."""
    for room, name, value in ((spool, "SHARED", 0), (cut_rows, "GROUP", 300), (spool, "KEPT", 12)):
        monkeypatch.setattr(room, name, value)
    monkeypatch.setattr(word_numbers, "CHUNK", 7)
    monkeypatch.setattr(spool, "hands", lambda: 2)


OFTEN = ("", ":min_length=3,max_length=9,split_seed=4", ":question=why,explain=question")
SELDOM = [pytest.param(each, marks=pytest.mark.slow) for each in (*SETTINGS, ":question=why") if each not in OFTEN]


@pytest.mark.parametrize("settings", [*OFTEN, *SELDOM])
def test_two_processes_make_the_task_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: str) -> None:
    in_pieces(monkeypatch)
    lines = [
        line | {"text": f"{line['text']} 'number' {i}.", "why": f"why ? {'!' * i}"} for i, line in enumerate(rows())
    ]
    lines[5]["text"] = lines[50]["text"] = ""
    held, spooled = both(monkeypatch, f"file:{jsonl(tmp_path / 'reviews.jsonl', lines)}{settings}")
    assert (spooled.hash, spooled.labels, spooled.notes) == (held.hash, held.labels, held.notes)
    assert {split: tuple(found) for split, found in spooled.splits.items()} == dict(held.splits)
    folder = spooled.split("train").path.parent
    listed = (folder / "words.txt").read_text().splitlines()
    assert len(listed) > len(set(listed)) > 0  # it began anew
    for split in ("train", "test"):
        for least, wrap in ((1, False), (3, True)):
            ours, theirs = held.split(split), spooled.split(split)
            reader = fit_vocabulary(ours, least, wrap)
            with monkeypatch.context() as unread:
                unread.setattr(Stored, "_read", None)  # nobody may read a text
                assert fit_vocabulary(theirs, least, wrap).words == reader.words
                by_numbers = collate(with_token_ids(theirs, reader), reader)
            for name, column in collate(ours, reader)._asdict().items():
                same = getattr(by_numbers, name)
                assert torch.equal(same, column) if isinstance(column, torch.Tensor) else same == column, name


def test_the_first_wrong_row_is_told_whoever_cuts_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_pieces(monkeypatch)
    lines: list[dict[str, Any]] = [line | {"text": f"a {i}"} for i, line in enumerate(rows())]
    lines[40]["rationale"], lines[60]["rationale"], lines[43]["text"] = [[0, 9]], [[0, 8]], 3
    with pytest.raises(ExegeteError) as plain:
        load_task(f"file:{jsonl(tmp_path / 'reviews.jsonl', lines[:43])}")
    monkeypatch.setattr(spool, "LARGE", 0)
    with pytest.raises(ExegeteError) as cut:
        load_task(f"file:{jsonl(tmp_path / 'reviews.jsonl', lines)}")
    assert str(cut.value) == str(plain.value)
    assert "row 41 of train" in str(cut.value)


def test_it_says_what_it_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spool, "LARGE", 0)
    said: dict[str, tuple[int, int]] = {}
    with heard(lambda label, done, total: said.update({label: (done, total)})):
        task = load_task(f"file:{jsonl(tmp_path / 'reviews.jsonl', rows())}")
        fit_vocabulary(task.split("train"))
    texts, train = sum(map(len, task.splits.values())), len(task.split("train"))
    assert said == {
        "reading, MB": (0, 1),
        "hashing, texts": (texts, texts),
        "vocabulary, texts": (train, train),
    }
