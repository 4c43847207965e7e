"""`exegete words`: what a person types and reads."""

import json
from pathlib import Path

import polars as pl
import pytest

import exegete as ex
from tests.studied import reviews
from tests.test_cli import call


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A checkpoint, and the task whose texts are scored, as a file."""
    folder = tmp_path_factory.mktemp("words")
    task = f"file:{reviews(folder / 'reviews.csv')}:text=review,label=sentiment,tokenizer=whitespace"
    ex.train("bilstm:size=8,hidden=8", task, training="epochs=2,metric=accuracy", out=folder / "model")
    return str(folder / "model"), task


def test_a_table_a_file_and_a_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: tuple[str, str], tmp_path: Path
) -> None:
    asked = ("words", "--model", model[0], "--task", model[1], "--with", "gradient:norm=l2,occlusion", "--least", "2")
    out = ("--csv", str(tmp_path / "w.csv"), "--figure", str(tmp_path / "w.svg"))
    assert call(monkeypatch, *asked, *out) == 0
    said = capsys.readouterr().out
    assert "The words that attention gives most" in said
    frame = pl.read_csv(tmp_path / "w.csv")
    assert frame["method"].unique(maintain_order=True).to_list() == ["attention", "gradient:norm=l2", "occlusion"]
    assert frame["texts"].min() >= 2  # type: ignore[operator]
    assert (tmp_path / "w.svg").read_text().startswith("<svg")
    assert call(monkeypatch, *asked, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == len(frame)
    again = ex.words(model[0], model[1], ["gradient:norm=l2", "occlusion"], least=2)
    assert again.frame["mean"].to_list() == pytest.approx([row["mean"] for row in found["rows"]])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either a run folder"),
        (("--model", "m"), "either a run folder"),
        (("run", "--figure", "w.png"), "ends in .svg"),
    ],
)
def test_what_is_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert call(monkeypatch, "words", *words) == 2
    assert said in " ".join(capsys.readouterr().err.split())
