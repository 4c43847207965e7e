"""Telling texts: those of the lowest τ, found again in the stages of a run, and drawn without losing a word."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from math import sqrt
from pathlib import Path

import pytest

from exegete.answers.pages.texts import best_methods, telling_texts
from exegete.report.columns import decimal
from exegete.report.heat import heat_block, heat_svg, legend
from exegete.report.heatmap import HeatMap, HeatRow
from tests.answers.pages.runs import ATTENTION, LRP, MODEL, TASK, WORDS, asked, scored_run
from tests.answers.pages.test_report_html import HOSTILE, Reader


def tau_b(first: list[float], second: list[float]) -> float:
    """Kendall's τ-b, pair by pair."""
    concordance = one = other = 0
    for i, j in combinations(range(len(first)), 2):
        a = (first[i] > first[j]) - (first[i] < first[j])
        b = (second[i] > second[j]) - (second[i] < second[j])
        concordance, one, other = concordance + a * b, one + a * a, other + b * b
    return concordance / sqrt(one * other)


def test_the_lowest_tau_comes_first(tmp_path: Path) -> None:
    told = telling_texts(tmp_path, scored_run(tmp_path), "test", [asked()])
    assert told is not None
    assert told.experiment == "faithfulness"
    assert told.title == "Where attention and LRP disagree most"
    texts = zip(ATTENTION[:2], LRP[:2], strict=True)  # the third has too few words
    expected = [tau_b(a, [abs(v) for v in b]) for a, b in texts]
    assert expected[1] < expected[0]
    assert [drawn.words for drawn in told.maps] == [tuple(WORDS[1]), tuple(WORDS[0])]
    assert f"τ = −{abs(expected[1]):.2f}." in told.maps[0].title
    assert "Predicted class 1 (p = 0.90), wrong: it is class 0." in told.maps[0].title
    assert f"The mean τ-b is {decimal(sum(expected) / 2, 2)}" in told.sentence
    assert "Of 2 texts" in told.sentence
    assert "agree most." not in told.sentence.replace("disagree most", "")  # all of them are shown
    own, other = told.maps[0].rows
    assert (own.name, own.values, own.signed) == ("attention", tuple(ATTENTION[1]), False)
    assert (other.name, other.values, other.signed) == ("LRP", tuple(LRP[1]), True)


def test_without_scores_there_are_no_texts(tmp_path: Path) -> None:
    cells = scored_run(tmp_path)
    assert telling_texts(tmp_path, cells, "dev", []) is None
    assert telling_texts(tmp_path, [cells[0] | {"experiments": {}}], "test", []) is None
    (tmp_path / "stages" / "predict-1" / "stage.json").unlink()
    assert telling_texts(tmp_path, cells, "test", []) is None


def test_several_models_show_one_text_each(tmp_path: Path) -> None:
    first = scored_run(tmp_path)[0]
    told = telling_texts(tmp_path, [first, first | {"seed": 1}, first | {"model": "average"}], "test", [asked()])
    assert told is not None
    assert [drawn.title.partition(". ")[0] for drawn in told.maps] == [
        "bilstm: tanh, softmax",
        "average: tanh, softmax",
    ]


def test_planted_tasks_wait(tmp_path: Path) -> None:
    first = scored_run(tmp_path)[0]
    told = telling_texts(tmp_path, [first | {"task": "sst:planted=token"}, first], "test", [])
    assert told is not None
    assert len(told.maps) == 2  # of one model: all of its texts
    alone = telling_texts(tmp_path, [first | {"task": "sst:planted=token"}], "test", [])
    assert alone is not None


def test_the_best_method_is_what_attention_was_held_against() -> None:
    tests = [asked(against="gradient, lrp"), asked(against="random"), asked(against="lrp"), asked(against="lime")]
    assert best_methods(tests) == {(TASK, MODEL): "lrp"}
    assert best_methods([asked(against="permuted weights"), asked(against="")]) == {}


MAP = HeatMap(
    HOSTILE,
    (HOSTILE, "good", "bad"),
    (HeatRow(HOSTILE, (0.5, 0.3, 0.2), False), HeatRow("m", (0.1, 0.4, -0.2), True)),
    "1",
)


def test_a_map_is_text_to_every_reader() -> None:
    drawn = heat_block(MAP, "Text 1")
    read = Reader(drawn)
    assert "<script" not in drawn
    words = [attributes for tag, attributes in read.elements if tag == "span" and "title" in attributes]
    assert len(words) == 6
    assert words[-1]["title"] == "bad: −0.2 (m)"
    assert str(words[-1]["class"]) == "w against"
    assert words[4]["style"] == "--i:1.000"
    assert "Highest scores: good 0.4, bad −0.2" in drawn
    assert len(read.all("tr")) == 1 + 3  # all numbers, a line per word
    assert all(cell.get("scope") for cell in read.all("th"))


def test_a_map_is_a_drawing_too() -> None:
    root = ET.fromstring(heat_svg(MAP))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [HOSTILE, HOSTILE, "good", "bad", "m", HOSTILE, "good", "bad"]
    shades = [float(rect.get("fill-opacity", 1)) for rect in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert shades == pytest.approx([1, 0.6, 0.4, 0.25, 1, 0.5])


def test_hues_are_explained_where_there_are_several() -> None:
    assert "against it" in legend([MAP])
    plain = HeatMap("t", ("a",), (HeatRow("m", (1.0,), False),), "1")
    assert not re.search("matters|class_", legend([plain]))
