"""Texts without labels: a finished model is asked about them in one line, and what needs labels says so."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import exegete as ex
from exegete.base.errors import UsageError
from exegete.tasks.catalogue import load_task
from exegete.tasks.prepare import UNLABELLED
from tests.models.tiny import bert, bert_folder
from tests.test_cli import call

WORDS = ("a", "bad", "movie", "charming", "unbelievably", "dull", "of", "plot", "terrific", "ok")
TEXTS = [" ".join(WORDS[(i * k) % 10] for k in range(2, 5 + i % 7)) + f" {i}" for i in range(60)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["my.txt", "my.csv", "reviews.jsonl"])
def test_a_file_without_labels_is_a_task(name: str) -> None:
    path = Path(name)
    if name.endswith("txt"):
        path.write_text("\n".join(TEXTS) + "\n\n", encoding="utf8")
    elif name.endswith("csv"):
        pl.DataFrame({"review": TEXTS}).write_csv(path)
    else:
        path.write_text("\n".join(json.dumps({"text": text, "stars": 3}) for text in TEXTS), encoding="utf8")
    from exegete.tasks.files import name_of_texts

    task = load_task(name_of_texts(path))
    assert not task.labelled
    assert task.check is None
    assert len(task.split("test")) + len(task.split("dev")) == len(TEXTS)
    assert task.gold(task.split("test")[0]) is None
    assert "have no labels" in " ".join(task.notes)


def test_of_many_texts_some_are_taken_whatever_their_order() -> None:
    texts = [f"text number {i}" for i in range(UNLABELLED + 500)]
    one, other = ex.task(texts=texts), ex.task(texts=texts[::-1])
    words = [{e.words for split in ("dev", "test") for e in task.split(split)} for task in (one, other)]
    assert len(words[0]) == UNLABELLED
    assert words[0] == words[1]


def test_nothing_is_trained_on_them() -> None:
    with pytest.raises(UsageError, match="have no labels, and average:size=4 would have to learn them"):
        ex.train("average:size=4", TEXTS)
    with pytest.raises(UsageError, match="have no labels, and bilstm"):
        ex.audit("bilstm", ex.task(texts=TEXTS), quick=True)


@pytest.mark.slow
def test_a_pipeline_and_a_list_of_texts_are_one_line(tmp_path: Path) -> None:
    import transformers

    base, tokenizer = bert()
    pipe = transformers.pipeline("text-classification", model=base, tokenizer=tokenizer)
    given: Any = pipe
    found = ex.audit(given, TEXTS, quick=True, out=tmp_path / "run", workers=1)
    assert found.answer
    card = {line.name: line.verdict for line in found.tests}
    assert "mediates" in card or "reads" in card
    rows = pl.read_parquet(tmp_path / "run" / "tables" / "agreement.parquet")
    assert rows["gold"].null_count() == rows.height
    report = found.report(tmp_path / "report.html")
    page = Path(report).read_text(encoding="utf8")
    assert "nobody knows how often it is right" in page
    assert "IT MAY ONLY GUESS" not in page


@pytest.mark.slow
def test_the_command_takes_a_model_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.txt").write_text("\n".join(TEXTS), encoding="utf8")
    assert call(monkeypatch, "audit", f"hf:{bert_folder()}", "my.txt", "--quick", "--out", "run", "--workers", "1") == 0
    said = capsys.readouterr()
    assert "have no labels" in said.out
    assert "report: " in said.out
    assert call(monkeypatch, "audit", f"hf:{bert_folder()}") == 2
    assert "give the texts to ask" in capsys.readouterr().err
