"""Translation tasks from files, the data folder and the hub; what is left out; what is wrong with two files."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.catalogue import check_task, load_task
from exegete.tasks.example import Link
from exegete.tasks.pieces import Pieces, join_pieces
from exegete.tasks.vocabulary import UNKNOWN, fit_vocabulary
from tests.tasks.task_files import data_set

Texts = list[tuple[str, str]]
TRAIN: Texts = [(f"The dog number {i} runs.", f"Der Hund Nummer {i} läuft.") for i in range(40)]
DEV: Texts = [("The dog runs.", "Der Hund läuft."), ("The number.", "Der Nummer.")]
TEST: Texts = [("Number 7 runs.", "Nummer 7 läuft."), ("The dog.", "Der Hund.")]


def written(folder: Path, **splits: Texts) -> str:
    """Two files per split, and the name of the task."""
    for split, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            (folder / f"{split}.{language}").write_text("".join(f"{p[side]}\n" for p in pairs), encoding="utf-8")
    more = [f"{s}_{side}={folder}/{s}.{x}" for s in splits if s != "train" for side, x in SIDES]
    return ",".join([f"parallel:{folder}/train.en:target={folder}/train.de,pieces=60", *more])


SIDES = (("source", "en"), ("target", "de"))


def test_two_files_per_split(tmp_path: Path) -> None:
    task = load_task(written(tmp_path, train=TRAIN, dev=DEV, test=TEST))
    assert (task.kind, task.labels, task.tokenizer, task.lower) == ("translation", (), "pieces", False)
    assert task.origin == "train.en, train.de, dev.en, dev.de, test.en, test.de"
    for split, pairs in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        assert [tuple(map(join_pieces, e.texts)) for e in task.split(split)] == pairs
        assert [(e.id, e.label, e.explained) for e in task.split(split)] == [(i, 0, 0) for i in range(len(pairs))]
    assert Pieces(task.pieces).cut("The Hund.") == (*Pieces(task.pieces).cut("The"), *Pieces(task.pieces).cut("Hund."))
    assert len(fit_vocabulary(task.split("train"))) <= 60 + 4
    assert task.notes == ()
    assert not task.alignments


def test_gzipped_files_and_the_ends_of_lines(tmp_path: Path) -> None:
    """Line ends are line feeds, with or without carriage returns; what Unicode calls a line is no line."""
    name = written(tmp_path, train=[*TRAIN, ("a\u2028b", "c\x85d")])
    (tmp_path / "train.de.gz").write_bytes(gzip.compress((tmp_path / "train.de").read_bytes().replace(b"\n", b"\r\n")))
    task = load_task(name.replace("train.de", "train.de.gz"))
    assert sum(map(len, task.splits.values())) == 41
    assert join_pieces(next(e for es in task.splits.values() for e in es if e.id == 40).texts[1]) == "c d"
    assert "split 80/10/10" in task.notes[0]


def test_files_of_different_length(tmp_path: Path) -> None:
    name = written(tmp_path, train=TRAIN)
    for longer, shorter, lines in (("train.en", "train.de", 38), ("train.de", "train.en", 37)):
        kept = (tmp_path / shorter).read_text(encoding="utf-8").splitlines()[:lines]
        (tmp_path / shorter).write_text("".join(f"{x}\n" for x in kept), encoding="utf-8")
        more = 40 if lines == 38 else 38
        with pytest.raises(ExegeteError) as raised:
            load_task(name)
        assert f"{longer} has {more} lines and " in str(raised.value)
        assert f"{shorter} has {lines}: line {lines + 1} of {longer} has no partner" in str(raised.value)


def test_empty_sides(tmp_path: Path) -> None:
    train = [*TRAIN[:6], ("alone", " "), ("", "allein"), ("", ""), *TRAIN[6:]]
    task = load_task(written(tmp_path, train=train, dev=DEV, test=[("", "x"), *TEST]))
    assert len(task.split("train")) == 40
    assert [e.id for e in task.split("test")] == [1, 2]
    assert task.notes[:2] == (
        "3 pairs were left out of train for want of a source or a target (the first is row 7).",
        "1 pair was left out of test for want of a source or a target (the first is row 1).",
    )
    with pytest.raises(ExegeteError, match="all 1 pairs of dev have an empty side"):
        load_task(written(tmp_path, train=TRAIN, dev=[("x", "")], test=TEST))


def test_long_sentences(tmp_path: Path) -> None:
    """Left out of train; of the others only if asked."""
    long = ("dog " * 12, "Hund")
    name = written(tmp_path, train=[*TRAIN, long], dev=DEV, test=[*TEST, (long[1], long[0])])
    task = load_task(f"{name},max_length=11")
    assert len(task.split("train")) == 40
    assert len(task.split("test")) == 3
    assert task.notes == (
        "1 pair was left out of train: longer than max_length=11 pieces.",
        "1 of test is longer than max_length=11 and stayed.",
    )
    task = load_task(f"{name},max_length=11,max_length_in=all")
    assert len(task.split("test")) == 2
    with pytest.raises(ExegeteError, match="no pair is left in train: give it more, or raise max_length=2"):
        load_task(f"{name},max_length=2")
    assert len(load_task(name).split("train")) == 41  # the default is 100


def test_unknown_characters_are_counted(tmp_path: Path) -> None:
    task = load_task(written(tmp_path, train=TRAIN, dev=DEV, test=[("The ☃☃.", "Der ☃.")]))
    assert task.notes == (
        "3 characters of test that can't be written in the pieces of train became the unknown piece.",
    )
    rows = fit_vocabulary(task.split("train")).rows(task.split("test")[0].texts[0])
    assert rows.count(UNKNOWN) == 2


def test_limits_case_and_direction(tmp_path: Path) -> None:
    name = written(tmp_path, train=TRAIN, dev=DEV, test=TEST)
    few = load_task(f"{name},train_limit=10,lower=true,reverse=true,step=all")
    assert (len(few.split("train")), few.lower, few.step) == (10, True, "all")
    assert tuple(map(join_pieces, few.split("test")[0].texts)) == ("nummer 7 läuft.", "number 7 runs.")
    assert {e.id for e in few.split("train")} <= {e.id for e in load_task(f"{name},train_limit=20").split("train")}
    assert few.hash != load_task(f"{name},train_limit=10,lower=true,step=all").hash


def test_equal_sources_stay_together(tmp_path: Path) -> None:
    pairs = [(f"the same {i // 4}", f"anders {i}") for i in range(200)]
    task = load_task(written(tmp_path, train=pairs))
    homes = {split: {e.texts[0] for e in examples} for split, examples in task.splits.items()}
    assert not homes["train"] & homes["test"]
    assert not homes["train"] & homes["dev"]
    assert load_task(f"{written(tmp_path, train=pairs)},reverse=true").split("test")[0].id == task.split("test")[0].id


def test_alignments(tmp_path: Path) -> None:
    name = written(tmp_path, train=TRAIN, dev=DEV, test=[("", "x"), *TEST])
    (tmp_path / "gold").write_text("\n0-0 1-1 2?0\n1-0\n")
    task = load_task(f"{name},alignments={tmp_path}/gold")
    assert task.alignments == {"test": {1: (Link(0, 0), Link(1, 1), Link(2, 0, False)), 2: (Link(1, 0),)}}
    assert task.hash != load_task(name).hash
    turned = load_task(f"{name},alignments={tmp_path}/gold,reverse=true")
    assert turned.alignments["test"][1] == (Link(0, 0), Link(0, 2, False), Link(1, 1))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("0-0\n", "gold has 1 lines and the test split 2 pairs"),
        ("0-0\n0-2\n", r"gold, line 2: the link 0-2 is outside a source of 2 and a target of 2 words"),
        ("0-0\n0_2\n", r"gold, line 2: '0_2' is no link"),
    ],
)
def test_wrong_alignments(lines: str, sentence: str, tmp_path: Path) -> None:
    name = written(tmp_path, train=TRAIN, dev=DEV, test=TEST)
    (tmp_path / "gold").write_text(lines)
    with pytest.raises(ExegeteError, match=sentence):
        load_task(f"{name},alignments={tmp_path}/gold")


def test_alignments_of_no_test_split(tmp_path: Path) -> None:
    name = written(tmp_path, train=TRAIN, dev=DEV)
    with pytest.raises(UsageError, match="give a test split of its own too"):
        load_task(f"{name},alignments={tmp_path}/gold")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("parallel:a.en", "task 'parallel:a.en': 'target' is missing"),
        ("parallel:a.en:target=a.de,dev_source=b.en", "dev needs both of its files: give dev_target=FILE too"),
        ("parallel:a.en:target=a.de,tokenizer=words", "unknown setting of task 'parallel:a.en' 'tokenizer'"),
        ("parallel:a.en:target=a.de,pieces=0", "pieces: .*greater than or equal to 1"),
        ("multi30k:test=2017", "test: Input should be 'test', 'test_2017_flickr'"),
        ("multi30k:planted=token", "unknown setting of task 'multi30k' 'planted'"),
        ("hf:owner/name:target=de", "'source' is missing"),
    ],
)
def test_wrong_settings(name: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        load_task(name)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=r"no such file: .*nowhere\.en"):
        load_task(f"parallel:{tmp_path}/nowhere.en:target={tmp_path}/nowhere.de")


def rows(pairs: Texts) -> list[dict[str, Any]]:
    return [{"source": source, "target": target} for source, target in pairs]


def test_multi30k_from_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {"train": TRAIN, "dev": DEV, "test": TEST, "test_2018_flickr": DEV}
    data_set(tmp_path, "multi30k", monkeypatch, **{split: rows(pairs) for split, pairs in splits.items()})
    task = load_task("multi30k:pieces=60")
    assert task.origin == "EXEGETE_DATA/multi30k"
    assert [tuple(map(join_pieces, e.texts)) for e in task.split("test")] == TEST
    other = load_task("multi30k:pieces=60,test=test_2018_flickr")
    assert [tuple(map(join_pieces, e.texts)) for e in other.split("test")] == DEV
    with pytest.raises(ExegeteError, match=r"no such file: .*test_2017_mscoco\.jsonl\.gz"):
        load_task("multi30k:test=test_2017_mscoco")


def test_multi30k_that_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_set(tmp_path, "multi30k", monkeypatch, train=rows(TRAIN), dev=[{"source": "x"}], test=rows(TEST))
    with pytest.raises(ExegeteError, match=r"dev\.jsonl\.gz, line 1: 'source' or 'target' is missing or no text"):
        load_task("multi30k")
    monkeypatch.delenv("EXEGETE_DATA")
    with pytest.raises(ExegeteError, match=r"set EXEGETE_DATA .* or use hf:bentrevett/multi30k:source=en,target=de"):
        load_task("multi30k")


@pytest.mark.parametrize("nested", [False, True])
def test_the_hub(nested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    (tmp_path / "set" / "data").mkdir(parents=True)
    for split, pairs in (("train", TRAIN), ("validation", [*DEV, ("x", None)]), ("test", TEST)):
        found = [{"en": source, "de": target} for source, target in pairs]
        table = datasets.Dataset.from_list([{"translation": row} for row in found] if nested else found)
        table.to_parquet(tmp_path / "set" / "data" / f"{split}-00000-of-00001.parquet")
    name = f"hf:{tmp_path}/set:source=en,pieces=60"
    task = load_task(f"{name},target=de")
    assert [tuple(map(join_pieces, e.texts)) for e in task.split("dev")] == DEV
    assert task.notes == ("1 pair was left out of dev for want of a source or a target (the first is row 3).",)
    with pytest.raises(UsageError, match=r"unknown column of .* 'dee': did you mean 'de'\? \(write target=COLUMN\)"):
        load_task(f"{name},target=dee")


def test_a_hub_task_with_a_target_is_a_translation() -> None:
    assert check_task("hf:owner/name:source=en,target=de").pieces == 4000
    assert check_task("hf:owner/name").tokenizer == "words"


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set")
@pytest.mark.parametrize(
    ("test", "size"), [("test_2017_flickr", 1000), ("test_2017_mscoco", 461), ("test_2018_flickr", 1071)]
)
def test_more_test_sets_of_multi30k(test: str, size: int) -> None:
    task = load_task(f"multi30k:test={test},train_limit=1000,pieces=500")
    assert [len(task.split(split)) for split in ("train", "dev", "test")] == [1000, 1014, size]


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("EXEGETE_DATA"), reason="EXEGETE_DATA is not set")
def test_multi30k_as_published() -> None:
    task = load_task("multi30k")
    assert [len(task.split(split)) for split in ("train", "dev", "test")] == [29_000, 1014, 1000]
    assert task.notes == ()
    assert len(fit_vocabulary(task.split("train"))) <= 4004
    train = task.split("train")
    means = [sum(len(e.texts[side]) for e in train) / len(train) for side in (0, 1)]
    assert means == pytest.approx([15.53, 16.51], abs=0.01)
    source, target = (join_pieces(text) for text in train[0].texts)
    assert source == "Two young, White males are outside near many bushes."
    assert target == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
