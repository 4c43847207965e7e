"""What is said of texts before anything is trained on them: leaks, wrong labels, rare classes; and what is refused."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks import spool
from exegete.tasks.catalogue import load_task
from exegete.tasks.data_check import DataCheck, check_data, percent
from tests.tasks.task_files import labelled, write_jsonl

ROWS = labelled(200)


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXEGETE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=["held", "spooled"])
def _kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "spooled":
        monkeypatch.setattr(spool, "LARGE", 0)


def name_of(tmp_path: Path, rows: list[dict[str, Any]], settings: str = "") -> str:
    return f"file:{write_jsonl(tmp_path / 'reviews.jsonl', rows)}{settings}"


def check_of(name: str) -> DataCheck:
    check = load_task(name).check
    assert check is not None
    return check


@pytest.mark.usefixtures("_kept")
def test_texts_that_two_splits_share_are_counted(tmp_path: Path) -> None:
    parts = ["train"] * 100 + ["dev"] * 20 + ["test"] * 50
    rows = [row | {"fold": part} for row, part in zip([*ROWS[:100], *ROWS[100:120], *ROWS[90:140]], parts, strict=True)]
    rows[125]["text"] = f"  {rows[125]['text'].replace(' ', '  ')} "  # white space makes no other text
    check = check_of(name_of(tmp_path, rows, ":split=fold"))
    assert [(each.split, each.texts, each.shared) for each in check.splits] == [
        ("train", 100, 0),
        ("dev", 20, 0),
        ("test", 50, 10),
    ]
    (warning,) = check.warnings
    assert warning.startswith("20.0% of test (10 of 50 texts) are in train, too")
    assert "20.0%" in str(check)


@pytest.mark.usefixtures("_kept")
def test_the_file_of_train_as_test_is_noticed(tmp_path: Path) -> None:
    name = name_of(tmp_path, ROWS)
    check = check_of(f"{name}:test={tmp_path / 'reviews.jsonl'},dev={tmp_path / 'reviews.jsonl'}")
    assert [warning[:12] for warning in check.warnings] == ["100% of dev ", "100% of test"]


@pytest.mark.usefixtures("_kept")
def test_copies_with_other_classes_and_rare_classes(tmp_path: Path) -> None:
    again = [ROWS[0] | {"label": "1"}, ROWS[1] | {"label": "0"}, ROWS[2]]
    rare = [{"text": f"rare {i}", "label": "rare"} for i in range(3)]
    parts = ["train"] * 206 + ["dev", "dev", "test", "test"]
    every = [*ROWS, *again, *rare, *labelled(4, "other")]
    check = check_of(
        name_of(tmp_path, [row | {"fold": part} for row, part in zip(every, parts, strict=True)], ":split=fold")
    )
    assert check.splits[0].repeated == 3
    assert check.splits[0].rarest == 3
    assert [warning.split(":")[0] for warning in check.warnings] == [
        "2 texts are there more than once, with different classes",
        "Classes with fewer than 5 texts in train",
    ]
    assert "'rare' (3)" in check.warnings[1]


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["1"] * 200, "has only the class '1': a classifier needs at least two"),
        (
            [random.Random(i).random() for i in range(200)],
            r"are numbers, not classes \(200 different ones in 200 texts\)",
        ),
        (list(range(200)), r"are numbers, not classes \(200 different ones"),
        ([f"id-{i}" for i in range(200)], r"are no classes \(200 different ones in 200 texts\): name the column"),
        ([None] * 200, "no row has a 'label': name the column of classes with label=COLUMN"),
    ],
)
def test_labels_from_which_nothing_is_learnt_are_refused(labels: list[Any], sentence: str, tmp_path: Path) -> None:
    rows = [{"text": row["text"], "label": label} for row, label in zip(ROWS, labels, strict=True)]
    with pytest.raises(UsageError, match=sentence) as raised:
        load_task(name_of(tmp_path, rows))
    assert raised.value.exit_code == 2


@pytest.mark.usefixtures("_kept")
def test_texts_that_are_all_alike_are_said_to_be(tmp_path: Path) -> None:
    rows = [{"text": "the same again", "label": str(i % 2)} for i in range(200)]
    with pytest.raises(ExegeteError, match=r"no text is left for dev and test: splits are cut from 1 different text"):
        load_task(name_of(tmp_path, rows))


@pytest.mark.usefixtures("_kept")
def test_a_column_of_splits_that_has_only_one(tmp_path: Path) -> None:
    name = name_of(tmp_path, [row | {"fold": "train"} for row in ROWS], ":split=fold")
    assert load_task(name).notes[0].startswith("Column 'fold' says train of every row: its texts were split 80/10/10")
    name = name_of(tmp_path, [row | {"fold": "test"} for row in ROWS], ":split=fold")
    with pytest.raises(ExegeteError, match="has test but no train"):
        load_task(name)


def test_grades_are_classes_and_a_long_scale_is_a_warning(tmp_path: Path) -> None:
    rows = [{"text": row["text"], "label": (i % 10) / 2} for i, row in enumerate(ROWS)]
    assert not check_of(name_of(tmp_path, rows)).warnings
    wide = [{"text": row["text"], "label": i % 30} for i, row in enumerate(labelled(3000))]
    (warning,) = check_of(name_of(tmp_path, wide)).warnings
    assert warning.startswith("The labels are 30 different numbers")


def test_the_check_of_a_large_file_is_that_of_memory_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(tmp_path, [*ROWS, *ROWS[:7], ROWS[8] | {"label": "1"}])
    held = check_of(name)
    monkeypatch.setattr(spool, "LARGE", 0)
    assert check_of(name) == check_of(name) == held == DataCheck.of(held.facts)


def test_counts_are_those_of_a_slow_count() -> None:
    draw = np.random.default_rng(0)
    splits = {
        name: np.array(
            [(draw.integers(0, 40) / 64, draw.integers(0, 3), draw.integers(1, 9)) for _ in range(n)],
            [("place", "f8"), ("label", "i8"), ("longest", "i8")],
        )
        for name, n in (("train", 60), ("dev", 30), ("test", 30))
    }
    found = check_data(splits, ("a", "b", "c"))
    train = splits["train"]["place"].tolist()
    for each, columns in zip(found.splits, splits.values(), strict=True):
        places = columns["place"].tolist()
        assert each.repeated == sum(place in places[:i] for i, place in enumerate(places))
        assert each.shared == (0 if each.split == "train" else sum(place in train for place in places))
    classes: dict[float, set[int]] = {}
    for columns in splits.values():
        for place, label in zip(columns["place"].tolist(), columns["label"].tolist(), strict=True):
            classes.setdefault(place, set()).add(label)
    assert f"{sum(len(each) > 1 for each in classes.values())} texts are there more than once" in found.warnings[2]


def test_shares_are_never_rounded_to_none_or_all() -> None:
    assert [percent(*pair) for pair in ((0, 9), (9, 9), (1, 9999), (9998, 9999))] == ["0%", "100%", "0.1%", "99.9%"]
