"""Words of a run: attention against what the audit held it against, on the page and in a terminal."""

import json
from pathlib import Path

import pytest

from exegete.answers.pages.words import words_of_cell, words_section
from exegete.base.errors import UsageError
from exegete.report.word_shares import _apart, _placed, shares_by_word
from tests.answers.pages.runs import asked, scored_run
from tests.measures.test_words import METHODS, corpus


def test_a_run_tells_its_words_again(tmp_path: Path) -> None:
    cells = scored_run(tmp_path)
    found = words_of_cell(tmp_path, cells[0], "test", "lrp", least=1)
    assert found is not None
    assert found.methods == ("attention", "lrp")
    rows = {(row["word"], row["method"]): row for row in found.frame.iter_rows(named=True)}
    assert rows["c", "attention"]["mean"] == pytest.approx(6 * 0.3)
    assert rows["d", "lrp"]["mean"] == pytest.approx(6 * 2.6 / 12.6)
    assert rows["d", "lrp"]["less"] == pytest.approx(6 * 0.05 - 6 * 2.6 / 12.6)
    assert (found.texts, found.silent, found.left_out) == (3, 0, 0)
    with pytest.raises(UsageError, match="lime"):
        words_of_cell(tmp_path, cells[0], "test", wanted=["lime"])


def test_rare_words_are_left_out_and_counted(tmp_path: Path) -> None:
    cells = scored_run(tmp_path)
    found = words_of_cell(tmp_path, cells[0], "test")
    assert found is not None
    assert (len(found), found.left_out) == (0, 14)
    assert "14 words in fewer than 5 texts are left out" in found.said
    assert words_section(tmp_path, cells, "test", [asked()]) is None  # nothing to show


def test_the_tables_and_the_figure_have_the_same_numbers() -> None:
    found = shares_by_word(corpus(60), METHODS, least=3)
    most = found.most(2)
    assert [column.title for column in most.shown] == ["word", "texts", "times", "attention", "LRP"]
    top = found.frame.filter(method="attention").sort("mean", descending=True)["word"][:2].to_list()
    assert most.frame["word"].to_list() == top
    apart = found.apart().frame
    assert all(row["less_low"] > 0 or row["less_high"] < 0 for row in apart.iter_rows(named=True))
    drawn = json.loads(found.figure().to_json())
    assert len(found.beside()) == len(json.loads(drawn["usermeta"]["numbers"])) == 5
    assert {axis["axis"]["title"] for axis in drawn["layer"][1]["encoding"].values()} == {"attention →", "LRP →"}


def test_drawn_words_do_not_overlap() -> None:
    beside = shares_by_word(corpus(60), METHODS).beside()
    same = beside.with_columns(own=1.0, other=1.0)
    assert _placed(same, 4.0)["room"].sum() == 1
    assert _placed(same, 4.0)["room"][0]  # the most frequent one
    assert not _apart((0, 2, 0, 2), (1, 3, 1, 3))
    assert _apart((0, 2, 0, 2), (1, 3, 2.5, 3))


def test_nothing_frequent_enough_is_an_empty_figure() -> None:
    found = shares_by_word(corpus(20), METHODS, least=50)
    assert (len(found), len(found.beside()), found.left_out) == (0, 0, 5)
    assert "nothing to show" in found.figure().to_dict()["description"]
