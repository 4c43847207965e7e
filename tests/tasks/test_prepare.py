"""Prepare: what is left out is counted, splits are completed, labels are in order, rationales find their tokens."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.example import Example, Record, Task
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.settings import TaskSettings


def rows(*pairs: tuple[str, str]) -> list[SourceRow]:
    return [SourceRow(i, Record((text,), label)) for i, (text, label) in enumerate(pairs)]


def many(count: int, prefix: str = "text") -> list[SourceRow]:
    return rows(*((f"{prefix} number {i}", str(i % 2)) for i in range(count)))


def made(splits: Mapping[str, Iterable[SourceRow]], **settings: Any) -> Task:
    return prepare("mine", splits, TaskSettings(**settings), "here")


TWO = rows(("good", "1"), ("bad", "0"))


def test_a_task_has_words_classes_and_an_origin() -> None:
    task = made(
        {"train": rows(("A Good film", "pos"), ("bad", "neg")), "dev": rows(("so", "neg")), "test": rows(("so", "pos"))}
    )
    assert task.labels == ("neg", "pos")
    assert task.split("train")[0] == Example(0, (("A", "Good", "film"),), 1)
    assert (task.name, task.origin, task.notes) == ("mine", "here", ())


def test_settings_are_kept_for_those_who_need_them() -> None:
    task = made({"train": TWO, "dev": TWO, "test": TWO}, tokenizer="words", lower=True, min_df=2)
    assert (task.tokenizer, task.lower, task.min_df) == ("words", True, 2)


def test_lower_case_and_tokenizer() -> None:
    train = rows(("It's Good.", "1"), ("bad", "0"))
    task = made({"train": train, "dev": TWO, "test": TWO}, tokenizer="words", lower=True)
    assert task.split("train")[0].words == ("it", "'s", "good", ".")


def test_empty_texts_are_counted_and_ids_stay() -> None:
    train = rows(("good", "1"), ("", "1"), ("  \n", "0"), ("bad", "0"))
    task = made({"train": train, "dev": TWO, "test": [*TWO, SourceRow(9, Record(("",), "0"))]})
    assert [e.id for e in task.split("train")] == [0, 3]
    assert task.notes == ("2 empty texts were left out of train.", "1 empty text was left out of test.")


def test_all_texts_empty() -> None:
    with pytest.raises(ExegeteError, match="all 2 texts of dev are empty"):
        made({"train": TWO, "dev": rows(("", "0"), (" ", "1")), "test": TWO})


def test_no_examples() -> None:
    with pytest.raises(ExegeteError, match="no examples"):
        made({"train": []})


def test_length_filter_is_counted() -> None:
    train = rows(("a b c", "1"), ("a b", "0"), ("a", "0"), ("a b c d", "1"))
    task = made({"train": train, "dev": rows(("a b", "0")), "test": rows(("a b c", "1"))}, min_length=2, max_length=3)
    assert [e.id for e in task.split("train")] == [0, 1]
    assert task.notes == ("2 texts were left out of train by the length filter.",)


def test_legacy_length_filter_drops_extremes() -> None:
    train = rows(("a b c", "1"), ("a b", "0"), ("a b", "1"), ("a", "0"))
    task = made({"train": train, "dev": train, "test": train}, legacy_length=True)
    assert [e.id for e in task.split("test")] == [1, 2]


def test_a_split_without_texts_left() -> None:
    with pytest.raises(ExegeteError, match="no text is left in dev"):
        made({"train": rows(("a b", "0"), ("b c", "1")), "dev": TWO, "test": TWO}, min_length=2)


def test_one_split_is_cut_80_10_10() -> None:
    task = made({"test": many(3000)})  # whatever its name
    sizes = [len(task.split(name)) for name in ("train", "dev", "test")]
    assert sum(sizes) == 3000
    assert [round(size / 3000, 1) for size in sizes] == [0.8, 0.1, 0.1]
    assert "80/10/10" in task.notes[0]


@pytest.mark.parametrize("missing", ["dev", "test"])
def test_a_missing_split_is_cut_from_train(missing: str) -> None:
    other = "test" if missing == "dev" else "dev"
    task = made({"train": many(3000), other: TWO})
    assert len(task.split(other)) == 2
    assert len(task.split("train")) + len(task.split(missing)) == 3000
    assert 0.08 < len(task.split(missing)) / 3000 < 0.12
    assert f"no {missing} split" in task.notes[0]


def test_train_is_needed() -> None:
    with pytest.raises(ExegeteError, match="has dev and test but no train"):
        made({"dev": TWO, "test": TWO})


def test_other_splits_are_refused() -> None:
    with pytest.raises(UsageError, match="'tset': did you mean 'test'"):
        made({"train": TWO, "tset": TWO})


def test_the_split_depends_on_the_text_and_the_seed_only() -> None:
    plain, lower, seeded = (
        made({"train": many(500)}),
        made({"train": many(500)}, lower=True),
        made({"train": many(500)}, split_seed=1),
    )
    backwards = made({"train": many(500)[::-1]})
    test = {e.id for e in plain.split("test")}
    assert test == {e.id for e in lower.split("test")} == {e.id for e in backwards.split("test")}
    assert test != {e.id for e in seeded.split("test")}


def test_limits_are_nested_and_in_order() -> None:
    splits = {"train": many(300), "dev": TWO, "test": many(50, "other")}
    small, large = made(splits, train_limit=40, test_limit=7), made(splits, train_limit=80)
    few, more = ([e.id for e in task.split("train")] for task in (small, large))
    assert (len(few), len(more), len(small.split("test")), len(large.split("test"))) == (40, 80, 7, 50)
    assert few == sorted(few)
    assert set(few) < set(more)


def test_labels_in_numerical_order() -> None:
    train = rows(*((f"text {n}", n) for n in ("10", "9", "-1", "2.5")))
    assert made({"train": train, "dev": train, "test": train}).labels == ("-1", "2.5", "9", "10")


def test_labels_in_alphabetical_order() -> None:
    train = rows(*((f"text {n}", n) for n in ("10", "9", "x")))
    assert made({"train": train, "dev": train, "test": train}).labels == ("10", "9", "x")


def test_one_class_only() -> None:
    with pytest.raises(ExegeteError, match="only the class 'pos'"):
        made({"train": rows(("a", "pos")), "dev": rows(("b", "pos")), "test": rows(("c", "pos"))})


def test_a_class_that_train_lacks() -> None:
    with pytest.raises(ExegeteError, match="class '2' occurs in test but not in train"):
        made({"train": TWO, "dev": TWO, "test": rows(("odd", "2"))})


def with_rationale(text: str, *spans: tuple[int, int]) -> dict[str, list[SourceRow]]:
    return {"train": [SourceRow(0, Record((text,), "1", spans)), TWO[1]], "dev": TWO, "test": TWO}


def test_rationales_find_their_tokens() -> None:
    splits = with_rationale("It wasn't good, was it?", (1, 3), (4, 5), (2, 2))
    words = made(splits, tokenizer="words", lower=True).split("train")[0]
    assert [words.words[i] for i in words.rationale] == ["was", "n't", "good", ",", "it", "?"]
    plain = made(splits).split("train")[0]
    assert [plain.words[i] for i in plain.rationale] == ["wasn't", "good,", "it?"]


def test_overlapping_spans_mark_a_word_once() -> None:
    assert made(with_rationale("a b c d", (0, 2), (1, 3))).split("train")[0].rationale == (0, 1, 2)


@pytest.mark.parametrize("span", [(0, 4), (-1, 2), (2, 1), (7, 9)])
def test_a_span_beyond_the_text(span: tuple[int, int]) -> None:
    with pytest.raises(ExegeteError, match=r"row 1 of train: the rationale span .* is not within the 3 words"):
        made(with_rationale("a b c", span))


def test_labels_that_are_no_finite_numbers() -> None:
    train = rows(("a", "nan"), ("b", "10"), ("c", "9"))
    assert made({"train": train, "dev": train, "test": train}).labels == ("10", "9", "nan")
