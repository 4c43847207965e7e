"""State importance: slow loops straight from the paper, and toys whose answer is known by hand."""

import math

import pytest
import torch
from torch import Tensor

from exegete.experiments.dispersion.state_importance import Output, StateImportance, state_importance
from exegete.experiments.dispersion.state_jacobian import _by_copies, gradient_norms, own_word, word_shares
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.batching import collate
from exegete.tasks.example import Example
from tests.small import SPECS, batch_of, small_model, texts

EXAMPLES = texts(14, seed=3, longest=6)
MODELS = (
    *SPECS,
    "bigru:size=7,hidden=6,scale=1",
    "bilstm:size=7,hidden=6,scale=1,projection=sparsegen,lam=0.9",
    "flat:size=6,hidden=5,scale=1,encoder=none",
)


def slow_shares(model: PoolingClassifier, example: Example) -> list[list[float]]:
    """Equation 5, one state and one word at a time: [p][i]."""
    batch = batch_of(model, [example])
    words = batch.words[0].nonzero()[:, 0].tolist()
    rows = []
    for p in words:
        embedded = model.embed(batch).detach().requires_grad_()
        length = model.encode(batch, embedded=embedded).states[0, p].square().sum().sqrt()
        (gradient,) = torch.autograd.grad(length, embedded)
        sizes = [float(sum(x * x for x in gradient[0, i].tolist())) ** 0.5 for i in words]
        rows.append([size / sum(sizes) if sum(sizes) else math.nan for size in sizes])  # a dead state has none
    return rows


def slow_outputs(model: PoolingClassifier, states: Tensor, mask: list[bool], weights: list[float] | None) -> Tensor:
    """Logits of one text from its states: Σ α_t W h_t + b, with its own weights or with given ones."""
    scores = model.scorer(states)
    alpha = model.project(scores[None], torch.tensor([mask]))[0] if weights is None else torch.tensor(weights)
    z = model.decoder.bias + sum(alpha[t] * (model.decoder.weight @ states[t]) for t in range(len(states)))
    return torch.cat([-z / 2, z / 2]) if model.one_output else z


def slow_state_importance(model: PoolingClassifier, example: Example, label: int, of: Output) -> list[list[float]]:
    batch = batch_of(model, [example])
    with torch.no_grad():
        whole = model.encode(batch).states[0]
    n, mask = len(whole), batch.words[0].tolist()
    own = model.project(model.scorer(whole)[None], batch.words)[0].detach()
    found: list[list[float]] = [[], [], [], []]
    for i in (t for t in range(n) if mask[t]):
        for place, weights in enumerate((None, own.tolist())):
            states = whole.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(slow_outputs(model, states, mask, weights)[label], states)
            found[place].append(float(gradient[i].norm()))
        rest = 1 - float(own[i])
        renormalised = [0.0 if t == i or rest < 1e-6 else float(own[t]) / rest for t in range(n)]
        without = [mask[t] and t != i for t in range(n)]
        projected = model.project(model.scorer(whole)[None], torch.tensor([without]))[0].tolist()
        before = slow_outputs(model, whole, mask, None).detach()
        for place, weights in ((2, renormalised), (3, projected)):
            after = slow_outputs(model, whole, mask, weights).detach()
            change = (before.softmax(0) - after.softmax(0)).abs().sum() / 2 if of == "tvd" else before - after
            found[place].append(float(change if of == "tvd" else change[label].abs()))
    return found


def predicted(model: PoolingClassifier) -> Tensor:
    with torch.no_grad():
        return model.trace(batch_of(model, EXAMPLES)).logits.argmax(-1)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("spec", MODELS)
def test_word_shares_against_slow_autograd(spec: str, wrap: bool) -> None:
    model = small_model(spec, EXAMPLES, wrap=wrap)
    for example in EXAMPLES[:3]:
        fast = word_shares(model, batch_of(model, [example]))[0]
        slow = torch.tensor(slow_shares(model, example), dtype=torch.float64)
        torch.testing.assert_close(fast, slow, atol=1e-5, rtol=0, equal_nan=True)


def test_going_back_through_time_is_the_same_as_copies() -> None:
    model = small_model(SPECS[0], EXAMPLES, wrap=True)
    alike = [e for e in texts(60, seed=5, longest=6) if len(e) == 5]
    batch = batch_of(model, alike)
    torch.testing.assert_close(gradient_norms(model, batch), _by_copies(model, batch), atol=1e-6, rtol=1e-5)
    alone = torch.cat([word_shares(model, batch_of(model, [e])) for e in alike])
    torch.testing.assert_close(word_shares(model, batch), alone, atol=1e-6, rtol=0)


def test_texts_of_different_lengths_are_refused() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    with pytest.raises(ValueError, match="batch them by length"):
        word_shares(model, batch_of(model, EXAMPLES))


def test_an_encoder_of_single_words_has_one_word_per_state() -> None:
    model = small_model("average:size=7,hidden=6,scale=1", EXAMPLES)
    shares = word_shares(model, batch_of(model, [EXAMPLES[0]]))
    torch.testing.assert_close(shares[0], torch.eye(len(EXAMPLES[0]), dtype=torch.float64))
    own, rank = own_word(shares)
    torch.testing.assert_close(own, torch.ones_like(own))
    assert rank.unique().tolist() == [1]


def test_a_state_that_no_word_moves_has_no_shares() -> None:
    model = small_model("average:size=7,hidden=6,scale=1,activation=relu", EXAMPLES)
    with torch.no_grad():
        for name, parameter in model.encoder.named_parameters():
            parameter.fill_(-1 if name.endswith("bias") else 0)
    own, rank = own_word(word_shares(model, batch_of(model, [EXAMPLES[0]])))
    assert own.isnan().all()
    assert rank.isnan().all()


def test_ranks_by_hand() -> None:
    shares = torch.tensor([[[0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.25, 0.5, 0.25]]], dtype=torch.float64)
    own, rank = own_word(shares)
    assert own.tolist() == [[0.5, 0.2, 0.25]]
    assert rank.tolist() == [[1, 3, 2.5]]
    even = torch.full((1, 4, 4), 0.25)
    assert own_word(even)[1].tolist() == [[2.5] * 4]  # what words that all count the same have: (n + 1) / 2


@pytest.mark.parametrize(("spec", "of"), [*((spec, "tvd") for spec in MODELS), (MODELS[1], "logit")])
def test_state_importance_against_slow_loops(spec: str, of: Output) -> None:
    model = small_model(spec, EXAMPLES, wrap="dot" in spec)
    labels = predicted(model)
    fast = state_importance(model, EXAMPLES, labels, of)
    for row, example in list(enumerate(EXAMPLES))[:3]:
        slow = slow_state_importance(model, example, int(labels[row]), of)
        for values, expected in zip(fast, slow, strict=True):
            got = values[row, : len(example)]
            torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=1e-4)
            assert values[row, len(example) :].isnan().all()


def test_a_text_alone_and_among_others() -> None:
    model = small_model(SPECS[1], EXAMPLES)
    labels = predicted(model)
    together = state_importance(model, EXAMPLES, labels)
    for i, example in enumerate(EXAMPLES):
        alone = state_importance(model, [example], labels[i : i + 1])
        for whole, part in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[i, : len(example)], part[0], atol=1e-6, rtol=1e-5)


def test_one_hot_attention() -> None:
    """All weight on one state: only it has a gradient and an effect; without it the decoder's bias decides."""
    model = small_model("bilstm:size=7,hidden=6,scale=1,projection=sparsegen,lam=0.9999", EXAMPLES)
    example = next(e for e in EXAMPLES if len(e) == 5)
    batch = collate([example], model.vocabulary)
    with torch.no_grad():
        encoded = model.encode(batch)
        weights = model.project(encoded.scores, encoded.mask)[0]
        logits = model.trace(batch).logits[0].double()
    assert sorted(weights.tolist()) == [0, 0, 0, 0, 1]
    found = StateImportance(*(v[0] for v in state_importance(model, [example], logits.argmax(-1, keepdim=True))))
    for values in found:
        assert ((values > 0) == (weights > 0)).all()
    bias = model.two_sided(model.decoder.bias.detach()).double()
    expected = (logits.softmax(0) - bias.softmax(0)).abs().sum() / 2
    assert float(found.renormalised.max()) == pytest.approx(float(expected), abs=1e-6)
    assert float(found.projected.max()) != pytest.approx(float(expected), abs=1e-6)  # another state takes its place


def test_constant_weights_make_the_gradient_attention_itself() -> None:
    model = small_model(SPECS[0], EXAMPLES)
    example = next(e for e in EXAMPLES if len(e) == 6)
    with torch.no_grad():
        weights = model.trace(batch_of(model, [example])).attention["attention"][0, 0, 0].double()
    found = state_importance(model, [example], torch.tensor([1]))
    torch.testing.assert_close(found.detached[0] / found.detached[0].sum(), weights, atol=1e-6, rtol=0)
    assert not torch.allclose(found.gradient[0] / found.gradient[0].sum(), weights, atol=1e-3)


def test_softmax_renormalised_or_projected_again_is_the_same() -> None:
    dense, sparse = (small_model(spec, EXAMPLES) for spec in (SPECS[0], SPECS[1]))
    same = state_importance(dense, EXAMPLES, predicted(dense))
    torch.testing.assert_close(same.renormalised, same.projected, atol=1e-9, rtol=1e-6, equal_nan=True)
    other = state_importance(sparse, EXAMPLES, predicted(sparse))
    assert not torch.allclose(other.renormalised.nan_to_num(0), other.projected.nan_to_num(0), atol=1e-3)
