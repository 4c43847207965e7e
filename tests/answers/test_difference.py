"""Two texts: words matched by hand, differences subtracted by hand."""

import json
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from exegete.answers.difference import Difference, match_words
from exegete.answers.explain import explain_prediction
from exegete.answers.pages.explanations import show_difference
from exegete.base.errors import UsageError
from exegete.report.columns import significant
from tests.answers.explained_model import checkpoint
from tests.answers.written_model import SOURCE, translator

FIRST, SECOND = "b a c d e", "b c d f e g"
METHODS = ("attention", "gradient_x_input")


@pytest.fixture(scope="module")
def found() -> Difference:
    first = explain_prediction(checkpoint(), FIRST, METHODS)
    return first.difference(explain_prediction(checkpoint(), SECOND, METHODS, first.target))


def test_words_are_matched_in_their_order(found: Difference) -> None:
    assert found.pairs == [(0, 0), (1, None), (2, 1), (3, 2), (None, 3), (4, 4), (None, 5)]
    assert match_words(["a"], ["b"]) == [(0, None), (None, 0)]
    assert match_words(["a", "a"], ["a"]) == [(0, 0), (1, None)]


def test_a_difference_is_the_second_score_minus_the_first(found: Difference) -> None:
    common = [(0, 0), (2, 1), (3, 2), (4, 4)]
    for method in METHODS:
        one, other = found.first[method].scores, found.second[method].scores
        slowly = [other[j] - one[i] for i, j in common]
        rows = found.frame.filter(method=method)
        assert rows["difference"].to_list() == pytest.approx(slowly)
        assert rows["word"].to_list() == ["b", "c", "d", "e"]
        assert found.to_json()["differences"][method] == pytest.approx(slowly)
    json.dumps(found.to_json(), allow_nan=False)


def test_both_are_shaded_on_one_scale(found: Difference) -> None:
    for one, other, apart in found.drawn().rows:
        most = max(map(abs, (*one.values, *other.values)))
        assert one.largest == other.largest == most
        assert max(one.intensity(i) for i in range(5)) <= 1
        assert max(apart.intensity(i) for i in range(4)) == 1
    assert found.drawn().changed == (frozenset({1}), frozenset({3, 5}))


def test_the_page_marks_what_only_one_has(found: Difference) -> None:
    page = found._repr_html_()
    changed = 3 * len(METHODS)
    assert page.count(" changed") - page.count("w changed") == changed
    assert "4 words in common, of 5 and 6" in page


def test_two_classes_are_not_compared() -> None:
    one, other = (explain_prediction(checkpoint(), FIRST, METHODS, label) for label in ("no", "yes"))
    with pytest.raises(UsageError, match="for one class"):
        one.difference(other)


def test_texts_without_a_word_in_common(found: Difference) -> None:
    other = explain_prediction(checkpoint(), "h i j", METHODS, found.first.target)
    apart = found.first.difference(other)
    assert apart.common == []
    assert apart.frame.is_empty()
    assert "0 words in common" in apart._repr_html_()


def test_sources_of_a_translator_are_compared_by_words() -> None:
    first = explain_prediction(translator(), SOURCE, ["gradient_x_input"])
    second = explain_prediction(translator(), SOURCE.replace("green", "red"), ["gradient_x_input"], first.target)
    assert first.difference(second).frame["word"].to_list() == ["two", "dogs", "fear", "five", "cats"]


@pytest.mark.parametrize("width", [80, 40])
def test_every_number_can_be_read_in_a_terminal(width: int) -> None:
    """All methods of two texts: no line is longer than the terminal, and no number or name is cut."""
    first = explain_prediction(checkpoint(), FIRST)
    found = first.difference(explain_prediction(checkpoint(), SECOND, target=first.target))
    console = Console(width=width, file=StringIO(), highlight=False, color_system=None)
    show_difference(found, console)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    table = text.partition("in common, of")[2]
    assert "…" not in table
    read = table.split()
    for one, other in found.rows.values():
        assert set(one.name.split()) <= set(read)
        for i, j in found.common:
            assert significant(other.values[j] - one.values[i]) in read
