"""The front door with a model of Hugging Face: a folder that transformers alone saved is audited by its name."""

import json
from pathlib import Path

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
    assert told.startswith(f"hf:{folder}")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert "tokenizer=whitespace,lower=false" in json.dumps(manifest["study"]["tasks"])
