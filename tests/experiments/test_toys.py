"""Toys: what correct methods must find, and what some methods can't, each known from the weights."""

import math

import polars as pl
import pytest

from exegete.experiments.known_answer.toys import TOYS, blind_attention, either, first_word, saturated, toys
from exegete.importance.attention import Attention
from exegete.importance.leave_one_out import LeaveOneOut
from exegete.tasks.batching import collate

# One at a time, from a finite difference or from a path: right wherever one word can change the prediction.
FINITE = ("integrated_gradients", "occlusion", "leave_one_out:of=logit", "replacement", "lime", "kernel_shap")
GRADIENTS = ("gradient:norm=l2", "gradient_x_input")
METHODS = ("attention", "random", *GRADIENTS, *FINITE)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], dict[str, float]]:
    table = toys(METHODS)
    assert table.height == len(TOYS) * len(METHODS)
    assert table["claim"].null_count() == 0
    return {(row["toy"], row["method"]): row for row in table.iter_rows(named=True)}


@pytest.mark.parametrize("toy", ["one_word", "bag", "blind_attention", "saturated", "both", "first_word"])
@pytest.mark.parametrize("method", FINITE)
def test_a_correct_method_finds_the_known_words(
    toy: str, method: str, found: dict[tuple[str, str], dict[str, float]]
) -> None:
    assert found[toy, method]["precision_at_k"] == 1
    assert found[toy, method]["sign"] == 1


@pytest.mark.parametrize("toy", ["one_word", "bag", "blind_attention", "both", "first_word"])
def test_gradient_x_input_finds_them_where_nothing_is_saturated(
    toy: str, found: dict[tuple[str, str], dict[str, float]]
) -> None:
    assert found[toy, "gradient_x_input"]["precision_at_k"] == found[toy, "gradient_x_input"]["sign"] == 1


@pytest.mark.parametrize("method", GRADIENTS)
def test_gradients_miss_a_saturated_word(method: str, found: dict[tuple[str, str], dict[str, float]]) -> None:
    assert found["saturated", method]["precision_at_k"] == 0


@pytest.mark.parametrize("method", ["occlusion", "leave_one_out:of=logit", "replacement", *GRADIENTS])
def test_one_at_a_time_finds_nothing_where_either_word_is_enough(
    method: str, found: dict[tuple[str, str], dict[str, float]]
) -> None:
    line = found["either", method]
    assert line["precision_at_k"] == pytest.approx(line["chance"])  # all words tie


@pytest.mark.parametrize("method", ["integrated_gradients", "lime", "kernel_shap"])
def test_taking_several_words_at_once_finds_both(method: str, found: dict[tuple[str, str], dict[str, float]]) -> None:
    assert found["either", method]["precision_at_k"] == found["either", method]["sign"] == 1


def test_attention_misses_what_it_does_not_point_at(found: dict[tuple[str, str], dict[str, float]]) -> None:
    assert found["blind_attention", "attention"]["precision_at_k"] == 0
    for toy in ("one_word", "bag", "saturated", "both", "either", "first_word"):  # uniform
        assert found[toy, "attention"]["precision_at_k"] == pytest.approx(found[toy, "attention"]["chance"])


def test_attention_is_where_the_weights_say() -> None:
    toy = blind_attention()
    weights = Attention()(toy.model, collate(toy.examples[:1], toy.model.vocabulary)).values[0]
    at = toy.examples[0].words.index("look")
    assert weights[at].item() == pytest.approx(math.exp(3) / (math.exp(3) + 3))


def test_logits_by_hand() -> None:
    """z = 4 tanh(10) over 4 words, and half of it for each class; the OR stays at 4 until both words are gone."""
    toy = saturated()
    logits = toy.model.trace(collate(toy.examples, toy.model.vocabulary)).logits[:, 1]
    assert logits.tolist() == pytest.approx([4 * (math.tanh(10) + math.tanh(0.01)) / 4 / 2] * 4)
    toy = either()
    batch = collate(toy.examples, toy.model.vocabulary)
    assert toy.model.trace(batch).logits[:, 1].tolist() == pytest.approx([2.0] * 4)
    assert LeaveOneOut(of="logit")(toy.model, batch).values.abs().max().item() == pytest.approx(0, abs=1e-6)


def test_the_first_word_is_copied() -> None:
    toy = first_word()
    for text in toy.examples:
        rest = tuple(reversed(text.words[1:]))
        turned = type(text)(0, ((text.words[0], *rest),), 1)
        logits = toy.model.trace(collate((text, turned), toy.model.vocabulary)).logits
        assert logits[0].tolist() == pytest.approx(logits[1].tolist(), abs=1e-3)
        assert logits[0, 1] > 1


@pytest.mark.parametrize("build", TOYS)
def test_every_toy_says_yes_and_its_answer_is_a_part_of_the_text(build: object) -> None:
    toy = build()  # type: ignore[operator]
    logits = toy.model.trace(collate(toy.examples, toy.model.vocabulary)).logits
    assert logits.argmax(-1).tolist() == [e.label for e in toy.examples] == [1] * len(toy.examples)
    assert all(0 < len(e.rationale) < len(e) for e in toy.examples)


def test_a_method_that_is_refused_has_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exegete.experiments.known_answer.toys.refusal", lambda *_: "not for this one")
    table = toys(["attention"])
    assert table["precision_at_k"].null_count() == table.height
    assert table.schema["precision_at_k"] == pl.Float64
