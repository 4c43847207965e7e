"""Importances on pairs of texts: the passage's words or the question's, never both; formulas against slow ones."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Target, refusal
from exegete.importance.erasure import Removal, erased
from exegete.models.ours.pair import Pair
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import SPECIAL
from tests.models.slow_pair import LABELS, slow
from tests.small import PAIRS, SEPARATING, batch_of, pairs, small_model

LIGHT = {
    "lime": "lime:samples=30",
    "kernel_shap": "kernel_shap:samples=30",
    "smoothgrad": "smoothgrad:samples=3",
    "integrated_gradients": "integrated_gradients:bound=0",
}
MODEL = small_model(PAIRS[0], pairs(2), labels=LABELS)
ALLOWED = tuple(LIGHT.get(name, name) for name in computable() if refusal(IMPORTANCES.make(name), MODEL) is None)
LOOKING = ("attention", "attention_x_gradient", "attention_x_norm")
MORE = (
    "gradient:norm=l1,of=loss", "gradient:norm=l2,of=probability", "gradient:detach=true",
    "integrated_gradients:bound=0,baseline=mean", "integrated_gradients:bound=0,baseline=unknown",
    "leave_one_out:of=logit,window=2", "lime:samples=30,removal=zero", "smoothgrad:samples=2,norm=input",
)  # fmt: skip


def a_pair(spec: str, examples: tuple[Example, ...], wrap: bool = False) -> Pair:
    model = small_model(spec, examples, wrap, LABELS)
    assert isinstance(model, Pair)
    return model


def test_nearly_all_importances_are_for_pairs() -> None:
    refused = {name for name in computable() if refusal(IMPORTANCES.make(name), MODEL) is not None}
    assert refused == {"deeplift", "rollout", "flow", "reading", "blocking", *SEPARATING}
    for name in refused:
        with pytest.raises(UsageError, match=r"[Pp]air"):
            IMPORTANCES.make(name)(MODEL, batch_of(MODEL, pairs(1)))


@pytest.mark.parametrize("wrap", [False, True])
def test_words_of_a_question_score_the_same_alone_and_in_any_batch(wrap: bool) -> None:
    examples = pairs(5, explained=1, candidates=True)
    model = a_pair(PAIRS[wrap], examples, wrap)
    batch = batch_of(model, examples)
    for method in [*ALLOWED, *MORE]:
        importance = IMPORTANCES.make(method)
        if method in LOOKING:
            with pytest.raises(UsageError, match="attention looks at the passage: the question's words have no weight"):
                importance(model, batch)
            continue
        whole = importance(model, batch).values
        assert torch.equal(whole.isnan(), ~batch.words), method
        for i, e in enumerate(examples):
            alone = importance(model, batch_of(model, [e])).values[0].to(whole.dtype)
            assert torch.allclose(whole[i, : len(alone)], alone, rtol=1e-4, atol=1e-5, equal_nan=True), method


@pytest.mark.parametrize("spec", PAIRS)
def test_attention_and_its_products_are_those_of_the_passage(spec: str) -> None:
    examples = pairs(5)
    model = a_pair(spec, examples)
    batch = batch_of(model, examples)
    weights, norm = (IMPORTANCES.make(name)(model, batch).values for name in ("attention", "attention_x_norm"))
    slope = IMPORTANCES.make("attention_x_gradient")(model, batch)
    states = model.encode(batch).states.detach().norm(dim=-1).tolist()
    for row, e in enumerate(examples):
        n = len(e)
        logits, alpha = slow(model, e)
        assert weights[row, :n].tolist() == pytest.approx(alpha, abs=1e-5)
        products = [a * size for a, size in zip(alpha, states[row][:n], strict=True)]
        assert norm[row, :n].tolist() == pytest.approx(products, abs=1e-4)
        label = max(range(3), key=lambda c: logits[c])
        for t in range(n):  # a difference of both sides
            moved = [
                slow(model, e, [a + step * (i == t) for i, a in enumerate(alpha)])[0][label] for step in (1e-4, -1e-4)
            ]
            assert float(slope.values[row, t]) == pytest.approx(alpha[t] * (moved[0] - moved[1]) / 2e-4, abs=1e-4)


def without(e: Example, place: int) -> Example:
    """The explained text without one word."""
    kept = tuple(word for i, word in enumerate(e.words) if i != place)
    texts = tuple(kept if number == e.explained else text for number, text in enumerate(e.texts))
    return Example(e.id, texts, e.label, candidates=e.candidates, explained=e.explained)


@pytest.mark.parametrize("explained", [0, 1])
@pytest.mark.parametrize("spec", PAIRS)
def test_leave_one_out_deletes_a_word_of_the_explained_text_only(spec: str, explained: int) -> None:
    examples = pairs(4, explained=explained, candidates=True)
    model = a_pair(spec, examples)
    values = IMPORTANCES.make("leave_one_out")(model, batch_of(model, examples)).values
    for row, e in enumerate(examples):
        before = torch.tensor(slow(model, e)[0], dtype=torch.float64).softmax(-1)
        found = values[row][~values[row].isnan()]
        assert len(found) == len(e)
        for t, value in enumerate(found.tolist()):
            after = torch.tensor(slow(model, without(e, t))[0], dtype=torch.float64).softmax(-1)
            assert value == pytest.approx(float((before - after).abs().sum() / 2), abs=1e-5)


@pytest.mark.parametrize("by", ["delete", "zero", "unknown"])
def test_erasing_a_whole_passage_leaves_what_the_decoder_makes_of_a_zero_context(by: Removal) -> None:
    examples = pairs(3, candidates=True)
    model = a_pair(PAIRS[0], examples)
    batch = batch_of(model, examples)
    logits = erased(model, batch, torch.arange(3), batch.words, by)
    for row, e in enumerate(examples):
        if by == "delete":
            empty = Example(0, ((), e.texts[1]), 0, candidates=e.candidates)
            assert logits[row].tolist() == pytest.approx(slow(model, empty)[0], abs=1e-5)
            nothing = slow(model, e, [0.0] * len(e))[0]
            assert logits[row].tolist() == pytest.approx(nothing, abs=1e-5)
        assert bool(logits.isfinite().all())


def replaced(model: Pair, examples: tuple[Example, ...], name: str) -> Tensor:
    """Embeddings with the explained words replaced, token by token."""
    batch = batch_of(model, examples)
    embedded = model.embed(batch).detach().clone()
    for row, e in enumerate(examples):
        table = model.tables[e.explained].weight.detach()
        for t in batch.words[row].nonzero()[:, 0].tolist():
            embedded[row, t] = 0 if name == "zero" else table[len(SPECIAL) :].mean(0)
    return embedded


@pytest.mark.parametrize("explained", [0, 1])
@pytest.mark.parametrize("baseline", ["zero", "mean"])
def test_integrated_gradients_share_out_what_the_explained_words_add(baseline: str, explained: int) -> None:
    examples = pairs(4, explained=explained)
    model = a_pair(PAIRS[0], examples, wrap=True)
    batch = batch_of(model, examples)
    label = torch.tensor([0, 1, 2, 0])
    ig = IMPORTANCES.make(f"integrated_gradients:baseline={baseline},bound=0.001")
    scores = ig(model, batch, Target(label))
    with torch.no_grad():
        whole = model.trace(batch).logits
        start = model.trace(batch, embedded=replaced(model, examples, baseline)).logits
    gain = (whole - start).gather(1, label[:, None])[:, 0]
    assert scores.values.nansum(-1).tolist() == pytest.approx(gain.tolist(), abs=2e-3)
    assert gain.abs().max() > 1e-2


@pytest.mark.parametrize("explained", [0, 1])
def test_the_gradient_is_that_by_the_table_of_the_words_text(explained: int) -> None:
    """Every letter once: the gradient of a row of the table is that of its word."""
    texts = (("a", "b", "c"), ("d", "a"))
    example = Example(3, texts, 0, explained=explained)
    model = a_pair(PAIRS[0], (example,))
    batch = batch_of(model, [example])
    values = IMPORTANCES.make("gradient:norm=l2")(model, batch, Target(torch.tensor([1]))).values[0]
    model.trace(batch).logits[0, 1].backward()
    table = model.tables[explained].weight
    assert table.grad is not None
    expected = [float(table.grad[model.vocabulary.index[word]].norm()) for word in texts[explained]]
    assert values[~values.isnan()].tolist() == pytest.approx(expected, rel=1e-4)


def test_a_class_that_may_not_be_chosen_has_scores_of_zero_and_no_nan() -> None:
    examples = tuple(Example(e.id, e.texts, 0, candidates=(0, 1)) for e in pairs(3))
    model = a_pair(PAIRS[0], examples)
    batch = batch_of(model, examples)
    for method in ("gradient", "leave_one_out:of=logit", "integrated_gradients", "lime:samples=20", "lrp"):
        values = IMPORTANCES.make(method)(model, batch, Target(torch.tensor([2, 2, 2]))).values
        assert bool((values[batch.words].abs() < 1e-6).all()), method
