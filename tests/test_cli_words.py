"""`exegete words`: what a person types and reads."""

import json
import random
import shutil
from pathlib import Path

import polars as pl
import pytest

import exegete as ex
from exegete.answers.pages.words import enough_words, words_of_run
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


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has scored 30 of 300 test texts, in which no word but the frequent ones is in five."""
    folder = tmp_path_factory.mktemp("quick")
    draw = random.Random(0)
    splits = ["train"] * 40 + ["dev"] * 10 + ["test"] * 300
    lines = [
        f"the film of it {' '.join(f'w{draw.randrange(70)}' for _ in range(4))} n{i},{i % 2},{split}"
        for i, split in enumerate(splits)
    ]
    (folder / "texts.csv").write_text("\n".join(["text,label,split", *lines]) + "\n")
    task = f"file:{folder / 'texts.csv'}:split=split"
    trained = ex.train("average:size=4,hidden=4", task, training="epochs=1")
    ex.ask("agreement", trained, task, texts=30, out=folder / "run")
    return folder / "run"


@pytest.mark.usefixtures("undrawn")
def test_a_run_with_few_texts_scores_more_until_there_are_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quick_run: Path
) -> None:
    assert len(words_of_run(quick_run)) < 10
    assert call(monkeypatch, "words", str(quick_run), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len({row["word"] for row in found["rows"]}) > 50
    assert found["texts"] in (250, 300)
    assert f"{found['texts']} texts were scored anew: the 30 of the run have " in found["more"]
    assert call(monkeypatch, "words", str(quick_run)) == 0
    assert "texts were scored anew" in " ".join(capsys.readouterr().out.split())


def test_scoring_more_is_bounded(quick_run: Path) -> None:
    found = enough_words(quick_run, most=40)
    assert found.texts == 40
    assert found.more.startswith("40 texts were scored anew")


def test_where_no_more_can_be_scored_the_words_of_the_run_are_told(quick_run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(quick_run, tmp_path / "run"))
    for folder in copy.glob("stages/train-*"):
        shutil.rmtree(folder)
    found = enough_words(copy)
    assert found.texts == 30
    assert "No more texts could be scored" in found.more


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
