"""`exegete explain`: what a person types and reads."""

import json
from pathlib import Path

import pytest

from tests.answers.explained_model import TEXT, saved
from tests.test_cli import call


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved(tmp_path_factory.mktemp("explained") / "model"))


def test_a_heat_map_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    page = tmp_path / "it.html"
    words = ("explain", TEXT, "--model", model, "--with", "gradient:norm=l2,attention", "--with", "leave_one_out")
    assert call(monkeypatch, *words, "--html", str(page), "--quiet") == 0
    captured = capsys.readouterr()
    for said in (
        "Predicted: ",
        "gradient",
        "attention",
        "leave-one-out (TVD)",
        "****",
        "May attention be read here?",
    ):
        assert said in captured.out
    assert "\x1b" not in captured.out  # not a terminal: marks, no colour
    assert "SmoothGrad" not in captured.out
    assert page.read_text().startswith("<!doctype html>")


def test_json_is_only_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str) -> None:
    words = ("explain", TEXT, "--model", model, "--with", "attention,random", "--json")
    assert call(monkeypatch, *words) == 0
    said = json.loads(capsys.readouterr().out)
    other = next(label for label in said["probabilities"] if label != said["prediction"])
    assert call(monkeypatch, *words, "--contrast", other) == 0
    assert json.loads(capsys.readouterr().out)["contrast"] == other
    assert {m["name"] for m in said["methods"]} == {"attention", "random"}
    assert len(said["methods"][0]["scores"]) == len(said["words"]) == 10
    assert {"prediction", "probabilities", "target", "of", "agreement", "reading", "trust", "notes", "refused"} <= set(
        said
    )
    assert "sentences" not in said


def test_a_file_gives_a_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("a b! c d\ne f <script>\n")
    words = ("explain", "--file", str(texts), "--model", model, "--with", "attention", "--by", "sentence")
    assert call(monkeypatch, *words, "--json", "--html", str(tmp_path / "all.html")) == 0
    said = json.loads(capsys.readouterr().out)
    assert [[s["text"] for s in each["sentences"]] for each in said] == [["a b !", "c d"], ["e f < script >"]]
    page = (tmp_path / "all.html").read_text()
    assert page.count('<section class="exegete-heatmap">') == 2
    assert "<script" not in page
    assert call(monkeypatch, *words, "--quiet") == 0
    assert capsys.readouterr().out.count("Predicted: ") == 2


def test_what_is_not_for_a_model_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    """One line for all methods and all texts; the reason where somebody asked for the method."""
    texts = tmp_path / "texts.txt"
    texts.write_text("a b c d\ne f a b\n")
    page = tmp_path / "all.html"
    assert call(monkeypatch, "explain", "--file", str(texts), "--model", model, "--html", str(page), "--quiet") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("Predicted: ") == 2
    assert shown.count("note: not for this model: rollout, flow") == 1
    assert "layers of self-attention" not in shown
    assert page.read_text().count("not for this model") == 1
    assert call(monkeypatch, "explain", "a b c", "--model", model, "--with", "rollout,attention", "--quiet") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "note: rollout is left out: rollout follows attention through layers of self-attention" in shown


def test_a_given_class_and_quantity(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    words = ("explain", TEXT, "--model", model, "--with", "attention", "--target", "no", "--of", "probability")
    assert call(monkeypatch, *words, "--no-color") == 0
    assert "Explained: the probability of no." in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "give either a text in quotes or --file"),
        (("a", "--file", "x.txt"), 2, "give either a text in quotes or --file"),
        (("",), 2, "the text is empty"),
        (("a b", "--target", "maybe"), 2, "choose from no, yes"),
        (("a b", "--with", "gradient,lpr"), 2, "unknown importance 'lpr'"),
        (("a b", "--of", "loss"), 2, "unknown quantity"),
        (("a b", "--by", "paragraph"), 2, "unknown unit"),
        (("--file", "none.txt"), 1, "there is no file none.txt"),
        (("a b", "--run", "nowhere"), 1, "there is no run folder nowhere"),
    ],
)
def test_wrong_words(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    model: str,
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "explain", *words, "--model", model) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_a_missing_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call(monkeypatch, "explain", "a b", "--model", str(tmp_path / "none")) == 1
    assert "there is no checkpoint folder" in capsys.readouterr().err
