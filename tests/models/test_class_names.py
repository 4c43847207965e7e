"""Classes whose names have slashes: named in a setting, on the command line, in Python, in files."""

import json
from pathlib import Path

import pytest

import exegete as ex
from exegete.base.errors import UsageError
from exegete.models.huggingface.labels import class_order
from exegete.report.labels import shorten_paths
from tests.test_cli import call

NEWS = ("business", "sci/tech", "sports", "world")


@pytest.mark.parametrize("given", ["World/Sports/Business/Sci/Tech", "world/sports/business/sci/tech"])
def test_a_setting_names_classes_with_slashes_between_slashes(given: str) -> None:
    theirs = ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    assert class_order(theirs, NEWS, given, "it") == (2, 3, 1, 0)


def test_a_class_that_begins_as_another_does_is_told_from_it() -> None:
    assert class_order(("0", "1", "2"), ("sci", "sci/tech", "tech"), "sci/tech/sci/tech", "it") == (0, 2, 1)
    assert class_order(("0", "1"), ("a", "a/b"), "a/b/a", "it") == (1, 0)


def test_the_example_of_a_refusal_is_taken() -> None:
    with pytest.raises(UsageError, match="as in labels=") as refused:
        class_order(("w", "x", "y", "z"), NEWS, "", "it")
    example = str(refused.value).partition("as in labels=")[2]
    assert class_order(("w", "x", "y", "z"), NEWS, example, "it") == (0, 1, 2, 3)


def test_names_of_classes_are_no_path() -> None:
    spec = "hf:owner/name:labels=World/Sports/Business/Sci/Tech"
    assert shorten_paths(spec, [spec]) == spec


def test_a_class_with_a_slash_is_explained_contrasted_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"n/a": "none", "sci/tech": "atom", "world": "vote"}
    labels = [list(words)[i % 3] for i in range(60)]
    rows = [f"a b c {words[label]} x{i},{label}" for i, label in enumerate(labels)]
    Path("news.csv").write_text("\n".join(["text,label", *rows]))
    ex.train("average:size=4,hidden=4", "file:news.csv", training="epochs=1", out="model")
    asked = ("--model", "model", "--with", "attention", "--target", "sci/tech", "--contrast", "n/a")
    assert call(monkeypatch, "explain", "a b atom", *asked, "--html", "page.html", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["target"], said["contrast"]) == ("sci/tech", "n/a")
    assert "sci/tech" in Path("page.html").read_text()
    assert ex.explain("model", "a b atom", ["attention"], target="sci/tech", contrast="n/a").target == "sci/tech"
    called = ("--labels", "sci/tech=science,n/a=nothing", "--out", "sheets")
    drawn = ("annotate", "draw", "--model", "model", "--task", "file:news.csv", "--count", "1")
    assert call(monkeypatch, *drawn, *called) == 0
