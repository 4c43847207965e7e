"""Given scores: looked up by text and word, and whatever is wrong with the file is one sentence with a count."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from exegete.base.errors import ExegeteError, UsageError
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.given import Given, absence, for_texts, specs_of, tokens_of
from exegete.runs.keys import code_of
from exegete.tasks.batching import collate
from exegete.tasks.example import Example, Task
from tests.small import small_model

TEST = (Example(3, (("a", "b", "c"),), 0), Example(5, (("b",),), 1))
DEV = (Example(8, (("c", "d"),), 1),)
TRAIN = (Example(0, (("a", "d"),), 0), Example(1, (("b", "c"),), 1))
TASK = Task("little", ("no", "yes"), {"train": TRAIN, "dev": DEV, "test": TEST}, "made up")
SCORES = [0.5, -1.0, 2.0, 7.0]


def table(scores: list[float] = SCORES, **more: Any) -> pl.DataFrame:
    return tokens_of(TASK).with_columns(pl.Series("score", scores), **more)


def saved(frame: pl.DataFrame, path: Path) -> str:
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    return str(path)


def test_the_table_to_fill_in_has_a_row_per_word() -> None:
    assert tokens_of(TASK, ("dev", "test")).rows() == [
        ("dev", 8, 0, "c"),
        ("dev", 8, 1, "d"),
        ("test", 3, 0, "a"),
        ("test", 3, 1, "b"),
        ("test", 3, 2, "c"),
        ("test", 5, 0, "b"),
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("columns", [("split", "example", "token", "word", "score"), ("score", "token", "example")])
def test_scores_land_on_their_words(suffix: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    frame = table().select(columns).sample(fraction=1.0, shuffle=True, seed=1)  # in any order
    importance = IMPORTANCES.make(f"given:file={saved(frame, tmp_path / f's{suffix}')}")
    model = small_model("bilstm:size=4,hidden=3", TEST)
    batch = collate([TEST[1], TEST[0]], model.vocabulary)
    scores = for_texts(importance, TASK, "test", TEST)(model, batch)
    nan = torch.nan
    expected = torch.tensor([[7.0, nan, nan], [0.5, -1.0, 2.0]], dtype=torch.float64)
    assert torch.equal(scores.values.nan_to_num(99), expected.nan_to_num(99))
    assert scores.signed
    assert torch.equal(scores.target.label, model.trace(batch).logits.argmax(-1))


def test_wrappers_get_no_score(tmp_path: Path) -> None:
    importance = Given(saved(table(), tmp_path / "s.parquet")).bound(TASK, "test", TEST)
    model = small_model("bilstm:size=4,hidden=3", TEST, wrap=True)
    batch = collate(TEST, model.vocabulary)
    assert importance(model, batch).values[0].isnan().tolist() == [True, False, False, False, True]


def test_a_sign_means_something_if_there_is_one_or_if_told(tmp_path: Path) -> None:
    file = saved(table([0.0, 1.0, 2.0, 3.0]), tmp_path / "s.parquet")
    assert not Given(file).bound(TASK, "test", TEST).signed
    assert Given(file, signed=True).bound(TASK, "test", TEST).signed


def test_several_methods_in_one_file(tmp_path: Path) -> None:
    both = pl.concat([table(method=pl.lit("shap")), table([1.0, 1.0, 1.0, 1.0], method=pl.lit("lime"))])
    file = saved(both, tmp_path / "s.parquet")
    found = {name: Given(file, name).bound(TASK, "test", TEST).scores[5].item() for name in ("shap", "lime")}
    assert found == {"shap": 7.0, "lime": 1.0}
    assert specs_of(file) == (f"given:file={file},name=lime", f"given:file={file},name=shap")
    with pytest.raises(UsageError, match="scores of lime, shap: choose one with name="):
        Given(file)
    with pytest.raises(UsageError, match="did you mean 'lime'"):
        Given(file, "limes")


def test_one_table_may_be_of_several_splits(tmp_path: Path) -> None:
    both = tokens_of(TASK, ("dev", "test")).with_columns(score=pl.arange(6).cast(pl.Float64))
    for columns in (both.columns, ["example", "token", "score"]):
        importance = Given(saved(both.select(columns), tmp_path / f"{len(columns)}.parquet"))
        assert importance.bound(TASK, "dev", DEV).scores[8].tolist() == [0.0, 1.0]
        assert importance.bound(TASK, "test", TEST).scores[3].tolist() == [2.0, 3.0, 4.0]


def test_a_split_without_scores_is_told_and_left_out(tmp_path: Path) -> None:
    importance = Given(saved(table(), tmp_path / "s.csv"))
    assert specs_of(importance.file) == (f"given:file={importance.file}",)
    assert absence(importance, TASK, "test") is None
    assert "has no scores of dev texts" in (absence(importance, TASK, "dev") or "")
    assert absence(IMPORTANCES.make("attention"), TASK, "dev") is None


def test_ids_that_are_counted_anew_in_every_split_need_a_column(tmp_path: Path) -> None:
    twin = (Example(3, (("d", "d", "d"),), 0),)
    task = Task("twins", ("no", "yes"), {"train": TRAIN, "dev": twin, "test": TEST}, "made up")
    named = Given(saved(table(), tmp_path / "named.csv"))
    assert named.bound(task, "test", TEST).scores[3].tolist() == [0.5, -1.0, 2.0]
    assert not named.has(task, "dev")
    with pytest.raises(UsageError, match="add a column `split`"):
        Given(saved(table().drop("split"), tmp_path / "bare.csv")).bound(task, "test", TEST)


WRONG: dict[str, tuple[pl.DataFrame, str]] = {
    "a column too few": (table().drop("token"), "has no column 'token'"),
    "no number": (table([1.0, float("nan"), float("inf"), 2.0]), r"in 2 of 4 rows, first in row 2 \(nan\)"),
    "nothing": (table().with_columns(score=pl.Series([1.0, None, 2.0, 3.0])), r"in 1 of 4 rows, first in row 2"),
    "half a token": (table().with_columns(token=pl.col("token") + 0.5), "token is not a whole number in 4 of 4"),
    "twice": (pl.concat([table(), table()[1:2]]), "several scores for one word, in 2 rows, first for split test, ex"),
    "a text too few": (table()[:3], "no scores for example 5 of test, and so it is in 1 of the 2"),
    "a word too few": (table().filter(pl.col("token") != 1), "other tokens than the 3 words of example 3.*token 1 has"),
    "a word too many": (
        pl.concat([table(), table()[3:].with_columns(token=pl.lit(1, pl.Int64))]),
        "1 words of example 5 .*token 1 or beyond",
    ),
    "another text": (table().with_columns(example=pl.col("example") + 100), "2 texts that 'little' doesn't have.* 103"),
    "other words": (table().with_columns(word=pl.lit("x")), "other words in example 3 of test, and so it is in 2 of"),
    "another split": (table().with_columns(split=pl.lit("tset")), "did you mean 'test'"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence_with_a_count(name: str, tmp_path: Path) -> None:
    frame, sentence = WRONG[name]
    with pytest.raises(ExegeteError, match=sentence) as found:
        Given(saved(frame, tmp_path / "s.parquet")).bound(TASK, "test", TEST)
    assert "\n" not in str(found.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="there is no file of scores"):
        IMPORTANCES.make("given:file=gone.csv")
    with pytest.raises(UsageError, match="'file' is missing"):
        IMPORTANCES.make("given")
    for name, text, sentence in (("s.txt", "x", "no kind of file"), ("s.parquet", "x", "can't be read as parquet")):
        (tmp_path / name).write_text(text, encoding="utf8")
        with pytest.raises(ExegeteError, match=sentence):
            Given(str(tmp_path / name))


def test_only_the_texts_that_are_asked_about_must_be_there(tmp_path: Path) -> None:
    assert [*Given(saved(table()[:3], tmp_path / "s.csv")).bound(TASK, "test", TEST[:1]).scores] == [3]


def test_they_cannot_be_computed_anew(tmp_path: Path) -> None:
    model = small_model("bilstm:size=4,hidden=3", TEST)
    with pytest.raises(UsageError, match="can't be computed anew"):
        Given(saved(table(), tmp_path / "s.csv"))(model, collate(TEST, model.vocabulary))


def test_other_scores_are_another_stage(tmp_path: Path) -> None:
    file = saved(table(), tmp_path / "s.csv")
    before, plain = code_of(Given(file)), code_of(IMPORTANCES.make("random"))
    assert code_of(Given(file)) == before
    saved(table([1.0, 2.0, 3.0, 4.0]), tmp_path / "s.csv")
    assert code_of(Given(file)) != before
    assert code_of(IMPORTANCES.make("random")) == plain


@settings(max_examples=15, deadline=None)
@drawn(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5), offset=st.integers(0, 10**6))
def test_whatever_the_lengths_a_score_lands_where_it_was_computed(
    lengths: list[int], offset: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    examples = tuple(Example(offset + i, (tuple("abcdef"[:n]),), 0) for i, n in enumerate(lengths))
    task = Task("drawn", ("no", "yes"), {"train": TRAIN[:0], "test": examples}, "made up")
    frame = tokens_of(task).with_columns(score=100.0 * pl.col("example") + pl.col("token"))
    file = saved(frame, tmp_path_factory.mktemp("given") / "s.parquet")
    found = Given(file).bound(task, "test", examples).scores
    for e in examples:
        assert found[e.id].tolist() == [100.0 * e.id + t for t in range(len(e))]
