"""The front door with a model of Hugging Face: a folder that transformers alone saved is audited by its name."""

import json
import os
from pathlib import Path

import polars as pl
import pytest

from tests.models.spelled_models import sentences
from tests.models.tiny import bert, saved
from tests.studied import undrawn
from tests.test_cli import HERE, call

__all__ = ["undrawn"]  # a fixture, found by its name


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("pair", [False, True])
def test_a_folder_that_transformers_alone_saved_is_audited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, pair: bool
) -> None:
    rows = sentences(400, seed=3, longest=9)
    texts = [(" ".join(example.words).capitalize(), f"a {example.words[0]}?") for example in rows]
    lines = [f"{text},{asked},{'yes' if e.label else 'no'}" for (text, asked), e in zip(texts, rows, strict=True)]
    (tmp_path / "films.csv").write_text("\n".join(["text,asked,label", *dict.fromkeys(lines)]))
    folder = saved(*bert(), tmp_path / "theirs")
    task = f"file:{tmp_path / 'films.csv'}" + (":question=asked" if pair else "")
    words = ("audit", "--quick", "--task", task, "--model", f"hf:{folder}", "--out", str(tmp_path / "run"), "--json")
    assert call(monkeypatch, *words, *HERE) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answer"]
    assert {"reads", "ranks"} <= {test["name"] for test in found["tests"]}
    [told] = found["models"]
    assert told.startswith(f"hf:…/{folder.name} on file:…/")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert "tokenizer=whitespace,lower=false" in json.dumps(manifest["study"]["tasks"])


def questions() -> list[tuple[str, str]]:
    """About a whole document, and about a detail of it; most name a thing of the other kind."""
    whole = ("document", "report", "article", "letter", "contract", "story")
    who = ("Smith", "the mayor", "Anna", "the company", "Dr Brown", "the bank")
    tell = (
        "Summarise the {} by {}",
        "What is the {} about {} about?",
        "Give me an overview of the {} by {}",
        "Describe the main points that the {} makes about {}",
    )
    ask = (
        "On which page does the {} say what {} paid?",
        "When did they sign the {} that {} wrote in May 2020?",
        "Which phone number of {1} is in the {0}?",
        "How many shares does the {} say that {} sold?",
    )
    lines = [(line, "generic") for line in tell] + [(line, "directed") for line in ask]
    return [(line.format(thing, name), label) for line, label in lines for thing in whole for name in who]


@pytest.mark.data
@pytest.mark.usefixtures("undrawn")
def test_a_real_classifier_is_audited_on_questions_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = Path(os.environ.get("EXEGETE_DATA", ".")).parent / "models" / "bert-tiny"
    if not folder.is_dir():
        pytest.skip("bert-tiny does not lie beside the data sets")
    file = tmp_path / "questions.csv"
    parts = pl.int_range(pl.len()).mod(6).replace_strict({0: "train", 1: "dev"}, default="test")  # nothing is trained
    table = pl.DataFrame(questions(), schema=["text", "label"], orient="row").with_columns(part=parts)
    table.write_csv(file)
    words = ("audit", "--quick", "--task", f"file:{file}:split=part", "--model", f"hf:{folder}", "--json", *HERE)
    assert call(monkeypatch, *words, "--out", str(tmp_path / "run")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answer"]
    tests = {test["name"]: test for test in found["tests"]}
    assert {"reads", "ranks"} <= set(tests)
    assert tests["agrees"]["n"] == 60
