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
    assert call(monkeypatch, "audit", "nowhere", "my.txt") == 2
    assert "'nowhere' is no trained model" in capsys.readouterr().err
    assert call(monkeypatch, "audit", f"hf:{bert_folder()}") == 2
    assert "give the texts to ask" in capsys.readouterr().err


def test_folders_and_modules_of_ones_own_have_the_same_short_form(tmp_path: Path) -> None:
    from exegete.runs.objects import model_named

    folder = bert_folder()
    assert model_named(str(folder)) == f"hf:{folder}"
    assert model_named("own:file=mine.py,trained=true") == "own:file=mine.py,trained=true"
    assert model_named("audit_quick") is None
    ex.train("average:size=4,hidden=4", ex.task(texts=TEXTS, labels=["a", "b"] * 30), out="mine", training="epochs=1")
    assert model_named("mine") == "mine"
    rows = ex.ask("permutation", "mine", TEXTS, texts=12, out=tmp_path / "run").rows
    assert rows.height == 12
    assert rows["gold"].null_count() == 12


OWN = """
import exegete, torch
from torch import nn

class Mine(exegete.OwnPooling):
    vocabulary = ["<pad>", "<unk>", *{words!r}]
    labels = {labels!r}
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.score, self.out = nn.Embedding(len(self.vocabulary), 4), nn.Linear(4, 1), nn.Linear(4, 2)
    def embed(self, tokens):
        return self.table(tokens)
    def states(self, embedded, mask):
        return embedded
    def scores(self, states, mask):
        return self.score(states)[..., 0]
    def decode(self, context):
        return self.out(context)

def make(words, labels):
    return Mine()
"""


def test_a_module_of_ones_own_names_its_classes(tmp_path: Path) -> None:
    Path("mine.py").write_text(OWN.format(words=WORDS, labels=["no", "yes"]), encoding="utf8")
    Path("nameless.py").write_text(OWN.format(words=WORDS, labels=None), encoding="utf8")
    rows = ex.ask("permutation", "own:file=mine.py,trained=true", TEXTS, texts=12, out=tmp_path / "run").rows
    assert set(rows["predicted"]) <= {"no", "yes"}
    with pytest.raises(UsageError, match="Mine doesn't name its classes: give its `labels`"):
        ex.ask("permutation", "own:file=nameless.py,trained=true", TEXTS, texts=12, out=tmp_path / "other")
