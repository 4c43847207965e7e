"""Pairs of texts from files and the hub: two columns, candidates, rationales over both, and what is refused."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.batching import collate
from exegete.tasks.catalogue import load_task
from exegete.tasks.vocabulary import fit_vocabulary
from tests.tasks.task_files import write_jsonl

Row = Mapping[str, Any]


def pair(i: int, **more: object) -> dict[str, Any]:
    return {"premise": f"The premise {i}.", "hypothesis": f"Is it {i}?", "label": "yn"[i % 2], **more}


def written(tmp_path: Path, rows: Sequence[Row], name: str = "pairs.jsonl") -> str:
    """The task of a file that is all three splits."""
    path = write_jsonl(tmp_path / name, rows)
    return f"file:{path}:text=premise,question=hypothesis,dev={path},test={path}"


def test_two_columns_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('premise,hypothesis,label\n"A man, outside.",Is he?,y\nTwo,Three,n\n', encoding="utf-8")
    task = load_task(f"file:{path}:text=premise,question=hypothesis,label=label,dev={path},test={path}")
    assert task.kind == "pair"
    first = task.split("train")[0]
    assert first.texts == (("a", "man", ",", "outside", "."), ("is", "he", "?"))
    assert (first.words, first.explained, first.candidates) == (first.texts[0], 0, ())
    batch = collate(task.split("train"), fit_vocabulary(task.split("train")))
    assert batch.words.sum(-1).tolist() == [5, 1]
    assert batch.candidates is None


def test_one_column_stays_one_text(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "a", "label": c, "candidates": "unrelated"} for c in "01"])
    task = load_task(f"file:{path}:dev={path},test={path}")
    assert task.kind == "classification"
    assert task.split("train")[0].candidates == ()


def test_rationales_count_the_words_of_both_texts(tmp_path: Path) -> None:
    rows = [pair(0, rationale=[[1, 3], [4, 6]]), pair(1)]  # The premise 0. Is it 0?
    passage = load_task(written(tmp_path, rows)).split("train")[0]
    assert [passage.words[i] for i in passage.rationale] == ["premise", "0", "."]
    question = load_task(written(tmp_path, rows) + ",explain=question").split("train")[0]
    assert question.words == ("is", "it", "0", "?")
    assert [question.words[i] for i in question.rationale] == ["it", "0", "?"]
    batch = collate([question], fit_vocabulary([question]))
    assert batch.words[0].tolist() == [False] * 4 + [True] * 4


def test_candidates_are_classes(tmp_path: Path) -> None:
    rows = [pair(0, candidates=["y", "n"]), pair(1, candidates=["m", " n "]), pair(2, candidates=None), pair(3)]
    task = load_task(written(tmp_path, rows))
    assert task.labels == ("m", "n", "y")
    assert [e.candidates for e in task.split("train")] == [(1, 2), (0, 1), (), ()]
    assert collate(task.split("train")[:2], fit_vocabulary(task.split("train"))).candidates is not None


def test_numbers_as_candidates(tmp_path: Path) -> None:
    rows = [pair(i, candidates=[2, 10]) | {"label": 2 + 8 * (i % 2)} for i in range(2)]
    assert load_task(written(tmp_path, rows)).labels == ("2", "10")


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"candidates": ["n", "m"]}, "line 2: the answer 'y' is not among its candidates: add it, or drop the row"),
        ({"candidates": []}, "line 2: the answer 'y' is not among its candidates"),
        ({"candidates": "y n"}, "line 2: 'candidates' is not a list of answers but 'y n': use jsonl or parquet"),
        ({"hypothesis": 7}, "line 2: 'hypothesis' is not a text but 7"),
        ({"rationale": [[5, 9]]}, r"row 2 of train: the rationale span \[5, 9\) is not within the 6 words"),
    ],
)
def test_bad_rows_name_their_line(bad: Row, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=sentence):
        load_task(written(tmp_path, [pair(1), {**pair(2), **bad}]))


def test_candidates_of_a_csv_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,label,candidates\na,b,y,y|n\n", encoding="utf-8")
    with pytest.raises(ExegeteError, match=r"a.csv, line 2: 'candidates' is not a list of answers"):
        load_task(f"file:{path}:text=premise,question=hypothesis")


def test_a_row_without_a_question_field(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=r"pairs.jsonl, line 2: there is no 'hypothesis'"):
        load_task(written(tmp_path, [pair(0), {"premise": "a", "label": "y"}]))


def test_empty_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    empty = [pair(i) | {"hypothesis": text} for i, text in enumerate(("", " ", None))]
    rows = [pair(0), *empty, pair(1), pair(2) | {"premise": "\n"}, pair(4) | {"premise": "", "hypothesis": ""}]
    task = load_task(written(tmp_path, rows))
    assert [e.id for e in task.split("train")] == [0, 4]
    assert task.notes[:2] == (
        "2 empty passages were left out of train.",
        "3 empty questions were left out of train.",
    )


@pytest.mark.parametrize(
    ("emptied", "sentence"),
    [
        ([("hypothesis",), ("hypothesis",)], "all 2 questions of train are empty: .* holds the question"),
        ([("premise",), ("premise",)], "all 2 passages of train are empty: .* holds the passage"),
        (
            [("premise",), ("hypothesis",)],
            "all 2 passages or questions of train are empty: .* holds the passage and the question",
        ),
    ],
)
def test_nothing_but_empty_texts(emptied: list[tuple[str, ...]], sentence: str, tmp_path: Path) -> None:
    rows = [pair(i) | dict.fromkeys(columns, "") for i, columns in enumerate(emptied)]
    with pytest.raises(ExegeteError, match=sentence):
        load_task(written(tmp_path, rows))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("text=premise,question=hypotesis", r"'hypotesis': did you mean 'hypothesis'\? \(write question=COLUMN\)"),
        ("text=premise,explain=question", "explain=question is for pairs of texts"),
        ("text=premise,question=premise", "text and question are both the column 'premise'"),
        ("text=premise,question=hypothesis,explain=premise", "'passage' or 'question'"),
    ],
)
def test_wrong_words(settings: str, sentence: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [pair(0), pair(1)])
    with pytest.raises(UsageError, match=sentence):
        load_task(f"file:{path}:{settings}")


def test_a_split_looks_at_both_texts(tmp_path: Path) -> None:
    """One premise with many hypotheses is many examples: they don't all land in one split."""
    rows = [pair(i) | {"premise": "The same."} for i in range(400)]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    task = load_task(f"file:{path}:text=premise,question=hypothesis")
    assert [round(len(task.split(name)) / 400, 1) for name in ("train", "dev", "test")] == [0.8, 0.1, 0.1]


@pytest.mark.parametrize(("explain", "kept"), [("passage", 1), ("question", 0)])
def test_words_are_planted_in_the_explained_text(explain: str, kept: int) -> None:
    plain = load_task(f"stories:train=200,dev=20,test=20,explain={explain}")
    task = load_task(f"stories:train=200,dev=20,test=20,explain={explain},planted=token")
    for before, e in zip(plain.split("test"), task.split("test"), strict=True):
        assert e.texts[kept] == before.texts[kept]
        assert e.label != before.label
        assert [e.words[i] for i in e.rationale] == [f"zq{'abcdef'[e.label]}"]


def test_nothing_is_planted_among_candidates(tmp_path: Path) -> None:
    rows = [pair(i, candidates=["y", "n"]) for i in range(40)]
    with pytest.raises(UsageError, match="planted=token makes any class right, but these texts have candidates"):
        load_task(written(tmp_path, rows) + ",planted=token")


def test_two_columns_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    home = tmp_path / "set" / "data"
    home.mkdir(parents=True)
    rows = [pair(i, candidates=["y", "n"]) | {"label": i % 2 if i else -1, "number": i} for i in range(40)]
    table = datasets.Dataset.from_list(rows).cast_column("label", datasets.ClassLabel(names=["y", "n"]))
    for split in ("train", "validation", "test"):
        table.to_parquet(home / f"{split}-00000-of-00001.parquet")
    task = load_task(f"hf:{home.parent}:text=premise,question=hypothesis")
    assert (task.kind, task.labels) == ("pair", ("n", "y"))
    assert task.split("test")[0].texts == (("the", "premise", "1", "."), ("is", "it", "1", "?"))
    assert task.split("test")[0].candidates == (0, 1)
    assert task.notes[0] == "1 rows of train have no class and were left out."
    with pytest.raises(UsageError, match=r"unknown column .*'hypo'.*\(write question=COLUMN\)"):
        load_task(f"hf:{home.parent}:text=premise,question=hypo")
    with pytest.raises(UsageError, match=r"'number' of .* is no text: name the column of questions with question"):
        load_task(f"hf:{home.parent}:text=premise,question=number")
    with pytest.raises(UsageError, match="explain=question is for pairs"):
        load_task(f"hf:{home.parent}:text=premise,explain=question")
