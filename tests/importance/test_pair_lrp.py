"""LRP on pairs: against a slow one number by number, and conservation over both texts."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from exegete.importance.lrp import Lrp, relevance
from exegete.importance.relevance import Dials
from exegete.models.ours.pair import Pair
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.importance import slow_lrp
from tests.importance.slow_lrp import Row, Rows, dot, linear_down, shares
from tests.models.slow_pair import LABELS, ODD, slow
from tests.small import PAIRS, batch_of, pairs, small_model

CHECKED = (
    "pair:size=5,hidden=3,scale=1",
    "pair:size=5,hidden=3,scale=1,encoder=bigru,reads=context",
    "pair:size=5,hidden=4,scale=1,encoder=average",
    "pair:size=5,hidden=4,scale=1,encoder=cnn,attention=dot",
)


def a_pair(spec: str, examples: tuple[Example, ...], wrap: bool = False) -> Pair:
    model = small_model(spec, examples, wrap, LABELS)
    assert isinstance(model, Pair)
    return model


def encoder_of(model: Pair, question: bool, xs: Rows) -> slow_lrp.Slow:
    """The slow encoders know classifiers: one that has this encoder."""
    name = model.settings.encoder
    like: Any = SimpleNamespace(
        encoder=model.question_encoder if question else model.encoder,
        name=name,
        settings=SimpleNamespace(model_dump=lambda: {"activation": "tanh"}),
    )
    return slow_lrp.ENCODERS[name](like, xs, {})


def pooled_down(weights: Row, states: Rows, given: Row) -> Rows:
    """The relevance of Σ_t w_t h_t handed to the states."""
    out = [[0.0] * len(given) for _ in states]
    for d, r in enumerate(given):
        for t, share in enumerate(shares([w * h[d] for w, h in zip(weights, states, strict=True)], 0.0, r)):
            out[t][d] = share
    return out


def asked(model: Pair, states: Rows) -> tuple[Row, Any]:
    """q and how its relevance goes to the states of the question."""
    size, half = len(states[0]), len(states[0]) // 2
    if model.settings.encoder == "average":
        equal = [1 / len(states)] * len(states)
        q = [sum(h[d] for h in states) / len(states) for d in range(size)]
        return q, lambda given: pooled_down(equal, states, given)
    if model.settings.encoder == "cnn":
        best = [max(range(len(states)), key=lambda t, d=d: states[t][d]) for d in range(size)]  # type: ignore[misc]
    else:
        best = [len(states) - 1] * half + [0] * half  # forward at the end, backward at the beginning
    q = [states[t][d] for d, t in enumerate(best)]
    return q, lambda given: [[given[d] * (best[d] == t) for d in range(size)] for t in range(len(states))]


def slow_relevance(model: Pair, batch: Batch, example: Example, label: int) -> tuple[Row, Row, float]:
    """Relevance of all tokens of one example, what initial states absorb, and the logit."""
    xs, n = model.embed(batch)[0].tolist(), len(example.texts[0])
    passage, question = encoder_of(model, False, xs[:n]), encoder_of(model, True, xs[n:])
    _, alpha = slow(model, example)
    context = [sum(a * h[d] for a, h in zip(alpha, passage.states, strict=True)) for d in range(len(passage.states[0]))]
    q, q_down = asked(model, question.states)
    decoder = model.decoder
    rows, bias = decoder.context.weight.tolist(), decoder.context.bias.tolist()
    inputs = list(context)
    if decoder.question is not None:
        rows = [a + b for a, b in zip(rows, decoder.question.weight.tolist(), strict=True)]
        bias = [a + b for a, b in zip(bias, decoder.question.bias.tolist(), strict=True)]
        inputs += q
    bent = torch.tensor([dot(row, inputs) + b for row, b in zip(rows, bias, strict=True)], dtype=torch.float64).tanh()
    w, b = decoder.outer.weight[label].tolist(), decoder.outer.bias[label].item()
    logit = dot(w, bent.tolist()) + b
    given = linear_down(rows, inputs, bias, linear_down([w], bent.tolist(), [b], [logit]))
    of_passage, first = passage.down(pooled_down(alpha, passage.states, given[: len(context)]))
    if decoder.question is None:
        return [sum(r) for r in of_passage] + [0.0] * (len(xs) - n), [*first, *[0.0] * len(first)], logit
    of_question, second = question.down(q_down(given[len(context) :]))
    return [sum(r) for r in (*of_passage, *of_question)], [*first, *second], logit


@pytest.mark.parametrize("spec", CHECKED)
def test_relevance_is_that_of_the_formulas_number_by_number(spec: str) -> None:
    examples = pairs(5)
    model = a_pair(spec, examples)
    batch = batch_of(model, examples)
    found = relevance(model, batch, None, Dials(0.001, True))
    for row, e in enumerate(examples):
        alone = batch_of(model, [e])
        tokens, absorbed, logit = slow_relevance(model, alone, e, int(found.label[row]))
        assert found.logit[row].item() == pytest.approx(logit, rel=1e-6)
        assert found.tokens[row, : len(tokens)].tolist() == pytest.approx(tokens, rel=1e-4, abs=1e-6)
        assert found.initial[row].tolist() == pytest.approx(absorbed, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", PAIRS)
def test_the_words_of_both_texts_and_initial_states_share_the_logit(spec: str, wrap: bool) -> None:
    examples = pairs(8, candidates=True)
    model = a_pair(spec, examples, wrap)
    batch = batch_of(model, examples)
    found = relevance(model, batch, None, Dials(0.001, True))
    logits = model.trace(batch).logits.detach()
    assert torch.equal(found.label, logits.argmax(-1))
    assert found.logit.tolist() == pytest.approx(logits.amax(-1).tolist(), abs=1e-5)
    assert found.error.max() < 1e-9
    shown = Lrp()(model, batch).values
    assert torch.equal(shown[batch.words], found.tokens[batch.words])
    reaches = bool((found.tokens[(batch.part == 1) & batch.present] != 0).any())
    assert reaches == (model.settings.reads == "both")


@pytest.mark.parametrize("spec", PAIRS)
def test_empty_texts_lose_their_part_and_nothing_is_nan(spec: str) -> None:
    model = a_pair(spec, pairs(3))
    examples = (*pairs(2), *ODD, Example(9, ((), ()), 0))
    found = relevance(model, batch_of(model, examples), None, Dials(0.001, True))
    assert bool(found.tokens.isfinite().all())
    assert found.error[:2].max() < 1e-9
    assert found.error[4] < 1e-9  # an unknown word is a word
    assert found.error[5] == 1
