"""`exegete annotate`: drawn, filled in by two people with rules of their own, interrupted, gone on with, read back."""

import csv
import json
import re
from pathlib import Path

import pytest

from exegete.runs.study import Study
from tests.answers.explained_model import saved
from tests.small import small_task
from tests.test_cli import call


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a file of texts that it can read."""
    folder = tmp_path_factory.mktemp("annotated")
    saved(folder / "model")
    task = small_task(longest=12)
    lines = [f'"{" ".join(e.words)} x{e.id}",{task.labels[e.label]}' for e in task.split("train")]
    (folder / "letters.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return folder


@pytest.fixture
def draw(place: Path) -> tuple[str, ...]:
    model, task = str(place / "model"), f"file:{place / 'letters.csv'}"
    return ("annotate", "draw", "--model", model, "--task", task, "--count", "4", "--format", "both")


def fill(sheet: Path, out: Path, rule: str, upto: int | None = None) -> Path:
    """Answer yes where the top words hold a letter of the rule; perhaps only the first few."""
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:upto]:
        row["relevant"] = "yes" if set(row["top words"].split("; ")) & set(rule) else "no"
    with out.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return out


@pytest.mark.parametrize("asked", [("--top", "99"), ("--count", "99"), ("--top", "99", "--count", "999")])
def test_what_could_be_drawn_instead_can_be(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    draw: tuple[str, ...],
    tmp_path: Path,
    asked: tuple[str, ...],
) -> None:
    """The advice of the refusal, taken as it is written."""
    assert call(monkeypatch, *draw, *asked, "--out", str(tmp_path / "items")) == 2
    advice = re.findall(r"(--(?:top|count)) (\d+)", capsys.readouterr().err)
    assert advice
    words = [word for pair in advice for word in pair]
    assert call(monkeypatch, *draw, *asked, *words, "--out", str(tmp_path / "items")) == 0


def test_a_run_stands_for_its_first_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], whole: Path, study: Study, tmp_path: Path
) -> None:
    """Of a run, the texts are those of its task; a run that is not complete says so."""
    draw = ("annotate", "draw", "--count", "1", "--top", "1", "--out")
    assert call(monkeypatch, *draw, str(tmp_path / "items"), "--model", str(whole)) == 0
    assert json.loads((tmp_path / "items" / "key.json").read_text())["task"] == study.tasks[0]
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "study.json").write_text((whole / "study.json").read_text())
    assert call(monkeypatch, *draw, str(tmp_path / "none"), "--model", str(tmp_path / "begun")) == 1
    assert "run" in capsys.readouterr().err


def test_from_draw_to_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], draw: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "items"
    assert call(monkeypatch, *draw, "--out", str(out)) == 0
    said = capsys.readouterr().out
    assert "8 items, for annotators: " in said
    assert "key.json: the annotators must not see it" in said
    assert sorted(path.name for path in out.iterdir()) == ["annotate.html", "key.json", "sheet.csv"]

    ann, bob = fill(out / "sheet.csv", tmp_path / "ann.csv", "abcd"), tmp_path / "bob.csv"
    fill(out / "sheet.csv", bob, "abef", upto=3)
    read = ("annotate", "read", str(out), str(ann), str(bob))
    assert call(monkeypatch, *read) == 0
    said = capsys.readouterr().out
    assert "note: bob has answered 3 of 8 items (5 missing): to go on, open the page again" in said
    assert call(monkeypatch, *read, "--strict") == 1
    assert "(5 missing)" in capsys.readouterr().err

    fill(out / "sheet.csv", bob, "abef")
    assert call(monkeypatch, *read, "--strict", "--out", str(tmp_path / "rows.csv")) == 0
    said = capsys.readouterr().out
    assert "missing" not in said
    for words in ("not relevant", "share relevant", "(all)", "κ = (p_o − p_e) / (1 − p_e)"):
        assert words in said.replace("\n", " ")
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert rows[0] == "annotator,item,example,condition,gold,predicted,correct,original,words,relevant"
    assert len(rows) == 1 + 2 * 8

    assert call(monkeypatch, *read, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"key", "task", "items", "annotators", "crossed", "relevant", "agreement", "notes"} <= set(found)
    assert found["agreement"][0]["n"] == 8
    assert len(found["crossed"]) == 3 * 2


def test_draw_for_machines_and_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], draw: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "items"
    assert call(monkeypatch, *draw, "--out", str(out), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["key"] == str(out / "key.json")
    assert len(said["sheets"]) == 2
    fill(out / "sheet.csv", out / "sheet.csv", "ab")
    before = (out / "sheet.csv").read_bytes()
    assert call(monkeypatch, *draw, "--out", str(out), "--json") == 0
    assert call(monkeypatch, *draw, "--out", str(out), "--seed", "1") == 1
    assert "holds another draw" in capsys.readouterr().err
    assert (out / "sheet.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--count", "999"), 2, "1,998 different texts are asked for"),
        (("--count", "0"), 2, "--count"),
        (("--format", "pdf"), 2, "unknown format 'pdf'"),
        (("--prediction", "new"), 2, "unknown prediction 'new'"),
        (("--labels", "no"), 2, "is not a setting: write key=value"),
        (("--labels", "maybe=x"), 2, "unknown class of task"),
        (("--model", "none"), 1, "there is no checkpoint"),
    ],
)
def test_wrong_words(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    draw: tuple[str, ...],
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    assert call(monkeypatch, *draw, "--out", str(tmp_path / "items"), *words) == code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""
    assert not (tmp_path / "items").exists()


def test_reading_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(monkeypatch, "annotate", "read", str(tmp_path), "x.csv") == 1
    assert "there is no key" in capsys.readouterr().err
    assert call(monkeypatch, "annotate", "read", str(tmp_path)) == 2
    assert "SHEET" in capsys.readouterr().err
