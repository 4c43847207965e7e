"""Removal: two cumulative sums against plain loops, toys known by hand, null keys, texts where nothing is left."""

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import example as such_as
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.common.removal import (
    gradient,
    key_noise,
    key_ranking,
    original,
    other_key,
    remove_in_order,
    single,
    without_each,
)
from exegete.models.build import make_classifier
from exegete.models.capabilities import Encoded
from exegete.models.openings import decoder
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.truths.ladder import Ladder
from tests.small import SPECS, decoder_of, small_model, texts, vocabulary

EXAMPLES = texts(40, seed=3)
EXPANDED = {"weights": 3, "mask": 2, "removable": 2}
GATES = "average:size=7,hidden=6,scale=1,projection=gates"
THREE = small_model("average:size=5,hidden=4,scale=1", EXAMPLES, labels=("a", "b", "c"))


def toy(values: Sequence[Sequence[float]], weights: Sequence[float], bias: Sequence[float], pad: int = 0) -> Pooled:
    """One text with W h_t, α and b set by hand, and keys that are not real behind it."""
    classes, keys = len(bias), len(values)
    model = small_model(
        f"average:size={classes},hidden={classes},outputs=classes", EXAMPLES, labels=tuple("abc")[:classes]
    )
    with torch.no_grad():
        model.decoder.weight.copy_(torch.eye(classes))
        model.decoder.bias.copy_(torch.tensor(bias))
    held = torch.tensor([[*values, *[[9.0] * classes] * pad]])
    mask = torch.tensor([[True] * keys + [False] * pad])
    alpha = torch.tensor([[*weights, *[0.0] * pad]])
    encoded = Encoded(held, alpha, mask, held)
    logits = (alpha[..., None] * held).sum(1) + torch.tensor(bias)
    return Pooled([0], decoder(model, encoded.to(torch.float64), torch.tensor([7]), alpha), logits.double())


def many_of(part: Pooled, n: int) -> Pooled:
    """One text n times, under other names."""
    rows = {name: getattr(part.opened, name).expand(n, *[-1] * (dims - 1)) for name, dims in EXPANDED.items()}
    return part._replace(opened=replace(part.opened, ids=torch.arange(n), **rows))


def slow(part: Pooled, row: int, gone: set[int]) -> list[float]:
    """Straight from the definition, in plain Python."""
    assert part.opened.values is not None
    weights, values = part.key_weights[row].tolist(), part.opened.values[row].tolist()
    model = decoder_of(part).model
    assert isinstance(model, PoolingClassifier)
    bias = model.two_sided(model.decoder.bias).tolist()
    kept = [t for t in range(len(weights)) if t not in gone and bool(part.mask[row, t])]
    mass = math.fsum(weights[t] for t in kept)
    share = {t: math.fsum(weights) * weights[t] / mass if mass else 0.0 for t in kept}
    return [math.fsum(share[t] * values[t][c] for t in kept) + b for c, b in enumerate(bias)]


def close(a: Tensor, b: Sequence[float]) -> bool:
    return torch.allclose(a, torch.tensor(b, dtype=torch.float64), rtol=0, atol=1e-8)


@pytest.mark.parametrize("spec", [*SPECS, GATES])
def test_removal_is_the_plain_loop(spec: str) -> None:
    model = small_model(spec, EXAMPLES)
    for part in open_pooled(model, EXAMPLES):
        keys = part.weights.shape[-1]
        order = key_ranking(part.key_weights, part.mask, key_noise(part, 0, "ties"))
        along, each = remove_in_order(part, order), without_each(part)
        for row in range(len(part.ids)):
            places = order[row].tolist()
            assert all(close(along[row, j], slow(part, row, set(places[:j]))) for j in range(keys + 1))
            assert all(close(each[row, t], slow(part, row, {t})) for t in range(keys))
            assert close(original(part)[row], slow(part, row, set()))


def test_gates_with_nothing_removed_are_the_model_s_own_prediction() -> None:
    """Their weights sum to the mean gate: renormalised to 1 they would predict something else."""
    for part in open_pooled(small_model(GATES, EXAMPLES), EXAMPLES):
        assert bool((part.weights.sum(-1) < 0.99).all())
        order = key_ranking(part.key_weights, part.mask, key_noise(part, 0, "ties"))
        for found in (original(part), remove_in_order(part, order)[:, 0]):
            assert torch.allclose(found, part.logits, rtol=0, atol=1e-12)


def ladder(share: float = 1.0, room: int = 64, labels: tuple[str, ...] = ("no", "yes")) -> Ladder:
    """Untrained, in float64, with gates that differ from word to word, and a bias."""
    torch.manual_seed(0)
    spec = f"ladder:size=6,scale=1,share={share},room={room}"
    model = make_classifier(spec, vocabulary(EXAMPLES), labels).eval().double()
    assert isinstance(model, Ladder)
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.mul_(3)
        model.decoder.bias.copy_(torch.linspace(-0.3, 0.4, model.outputs))
    return model


@pytest.mark.parametrize(("room", "labels"), [(64, ("no", "yes")), (2, ("no", "yes")), (64, ("a", "b", "c"))])
def test_a_ladder_s_word_takes_its_weighted_vote_with_it(room: int, labels: tuple[str, ...]) -> None:
    """share = 1: every logit loses exactly m α_t s_t, so no word's effect is above that of a higher weight."""
    model = ladder(room=room, labels=labels)
    m = model.encoder.strength.item()
    for part in open_pooled(model, EXAMPLES):
        lost = original(part)[:, None] - without_each(part)  # [batch, key, class]
        order = key_ranking(part.key_weights, part.opened.removable, key_noise(part, 0, "ties"))
        for row, example in enumerate(part.members):
            words = EXAMPLES[example].words
            assert int(part.opened.removable[row].sum()) == len(words)
            for place, word in enumerate(words, start=1):  # the null key is the start symbol
                leaning = model.encoder.linear(model.embedding.weight[model.vocabulary.index[word]]).tolist()
                signs = [1.0 if z >= 0 else -1.0 for z in leaning]
                votes = signs if model.outputs > 1 else [-signs[0], signs[0]]
                assert close(lost[row, place], [m * float(part.key_weights[row, place]) * s for s in votes])
            effects = [float(lost[row, t].abs().max()) for t in order[row, : len(words)].tolist()]
            assert all(a >= b - 1e-12 for a, b in itertools.pairwise(effects))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_removed_weight_goes_to_the_null_key(share: float) -> None:
    """Along any order: the model's own decoder under weights that the null key fills up; all gone, a constant."""
    for part in open_pooled(ladder(share), EXAMPLES):
        null = part.opened.null
        assert null is not None
        order = key_ranking(part.key_weights, part.opened.removable, key_noise(part, 0, "ties"))
        along, n = remove_in_order(part, order), int(part.opened.removable[0].sum())
        assert torch.allclose(along[:, 0], part.logits, rtol=0, atol=1e-12)
        assert bool(null.gather(1, order)[:, n:].sum(-1).eq(1).all())  # never among the n words that go
        for j in range(n + 1):
            weights = part.key_weights.scatter(1, order[:, :j], 0.0)
            weights[null] += 1 - weights.sum(-1)
            assert torch.allclose(along[:, j], part.decode(weights[:, None, None])[:, 0], rtol=0, atol=1e-10)
            assert share > 0 or torch.allclose(along[:, j], part.logits, rtol=0, atol=1e-12)


def test_the_null_key_is_neither_the_highest_nor_another() -> None:
    """It has nearly all the mass. Words are counted, and drawn as in a model without wrappers."""
    plain = {int(i): p for p in open_pooled(THREE, EXAMPLES) for i in p.ids}
    for part in open_pooled(ladder(), EXAMPLES):
        null, found = part.opened.null, single(part, "other", 3)
        assert null is not None
        assert bool((part.key_weights[null] > 0.5).all())
        assert found.keys.tolist() == [int(plain[int(i)].mask[0].sum()) for i in part.ids]
        assert bool((found.difference < 0.5).all())
        assert torch.equal(found.emptied, found.keys == 1)
        assert torch.equal(key_noise(part, 0, "ties")[:, 1:-1], key_noise(plain[int(part.ids[0])], 0, "ties"))
        for sampler in ("other", "legacy"):
            drawn = other_key(part, torch.ones(len(part.ids), dtype=torch.long), sampler, 0)
            assert not null.gather(1, drawn[:, None]).any()


def test_a_text_known_by_hand() -> None:
    part = toy([[3.0, 0.0], [0.0, 4.0], [0.0, 1.0]], [0.5, 0.25, 0.25], [0.0, 0.5])
    found = remove_in_order(part, torch.tensor([[0, 1, 2]]))[0]
    assert close(found, [[1.5, 1.75], [0, 3.0], [0, 1.5], [0, 0.5]])  # type: ignore[list-item]
    assert close(without_each(part)[0], [[0, 3.0], [2.0, 1 / 3 + 0.5], [2.0, 4 / 3 + 0.5]])  # type: ignore[list-item]


def test_one_weight_that_is_not_zero_leaves_the_bias() -> None:
    part = toy([[3.0, 0.0], [0.0, 4.0]], [1.0, 0.0], [0.25, 0.5])
    assert close(without_each(part)[0], [[0.25, 0.5], [3.25, 0.5]])  # type: ignore[list-item]
    found = single(part, "other", 0)
    assert found.emptied.tolist() == [True]
    assert close(found.top[0], [0.25, 0.5])


def test_tiny_weights_are_not_lost_beside_large_ones() -> None:
    """A total minus what is gone would find nothing here: 1 + 1e-30 is 1 in float64."""
    part = toy([[3.0, 0.0], [0.0, 4.0], [0.0, 2.0]], [1.0, 1e-30, 1e-30], [0.0, 0.0])
    assert close(without_each(part)[0, 0], [0.0, 3.0])
    assert close(remove_in_order(part, torch.tensor([[0, 1, 2]]))[0, 1], [0.0, 3.0])
    assert not single(part, "other", 0).emptied.any()


def test_keys_that_are_not_real_change_nothing() -> None:
    values, weights = [[3.0, 0.0], [0.0, 4.0], [0.0, 1.0]], [0.5, 0.2, 0.3]
    plain, padded = toy(values, weights, [0.0, 0.5]), toy(values, weights, [0.0, 0.5], pad=2)
    a, b = (single(part, "other", 4) for part in (plain, padded))
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y)
    orders = [key_ranking(part.key_weights, part.mask, key_noise(part, 0, "ties")) for part in (plain, padded)]
    assert orders[1][0].tolist()[:3] == orders[0][0].tolist()
    torch.testing.assert_close(remove_in_order(padded, orders[1])[:, :4], remove_in_order(plain, orders[0]))


def test_the_gradient_is_autograd_s() -> None:
    """∂p_c/∂α_t with weights as free variables, in closed form."""
    for part in open_pooled(THREE, EXAMPLES):
        logits = original(part)
        assert part.opened.values is not None
        weights, values = part.key_weights.clone().requires_grad_(), part.opened.values.double()
        bias = THREE.decoder.bias.double().detach()
        p = ((weights[..., None] * values).sum(1) + bias).softmax(-1)
        (expected,) = torch.autograd.grad(p.gather(1, logits.argmax(-1)[:, None]).sum(), weights)
        assert torch.allclose(gradient(part, logits)[:, 0], expected, atol=1e-6)


def test_a_decoder_that_is_not_linear_is_decoded_again_and_again() -> None:
    """The same model without W h_t at hand: what it decodes one by one is what the sums give."""

    def curved(part: Pooled) -> Pooled:
        values = part.opened.values

        class Hidden(type(decoder_of(part).model)):  # type: ignore[misc]
            def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
                return super().decode(encoded._replace(values=values), weights)  # type: ignore[no-any-return]

        model = copy.deepcopy(decoder_of(part).model)
        model.__class__ = Hidden
        encoded = decoder_of(part).encoded._replace(values=None)
        return part._replace(opened=decoder(model, encoded, part.ids))

    for part in (
        *open_pooled(THREE, EXAMPLES),
        *open_pooled(small_model(GATES, EXAMPLES), EXAMPLES),
        *open_pooled(ladder(), EXAMPLES),
    ):
        order = key_ranking(part.key_weights, part.opened.removable, key_noise(part, 0, "ties"))
        both = torch.stack([order, order.flip(-1)], 1)
        other = curved(part)
        assert torch.allclose(remove_in_order(other, both), remove_in_order(part, both), atol=1e-5)
        assert torch.allclose(without_each(other), without_each(part), atol=1e-5)
        assert torch.allclose(gradient(other, original(other)), gradient(part, original(part)), atol=1e-5)


def test_ties_are_broken_by_the_text_and_not_by_place() -> None:
    flat = torch.zeros(200, 4)
    part = toy([[0.0, 0.0]] * 4, [0.25] * 4, [0.0, 0.0])
    many = many_of(part, 200)
    first = key_ranking(flat, many.mask, key_noise(many, 0, "ties"))[:, 0]
    assert torch.bincount(first).min() > 25  # 50 expected
    assert torch.equal(
        key_ranking(-torch.arange(4.0)[None], part.mask, key_noise(part, 0, "ties")), torch.arange(4)[None]
    )


def draws(sampler: str, top: int, n: int = 6000) -> Tensor:
    """How often each of 4 keys is r."""
    part = toy([[0.0, 0.0]] * 4, [0.25] * 4, [0.0, 0.0])
    many = many_of(part, n)
    drawn = other_key(many, torch.full((n,), top), sampler, 0)  # type: ignore[arg-type]
    return torch.bincount(drawn, minlength=4) / n


@pytest.mark.parametrize("top", range(4))
def test_another_key_is_uniform_over_the_others(top: int) -> None:
    expected = torch.full((4,), 1 / 3)
    expected[top] = 0
    assert torch.allclose(draws("other", top), expected, atol=0.03)
    assert draws("other", top)[top] == 0


@pytest.mark.parametrize("top", range(4))
def test_the_legacy_sampler_never_takes_the_first_and_may_take_the_highest(top: int) -> None:
    assert torch.allclose(draws("legacy", top), torch.tensor([0, 1 / 3, 1 / 3, 1 / 3]), atol=0.03)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6), st.integers(0, 5))
@such_as([0.5, 0.50001], 0)
@such_as([0.50001, 0.5], 0)
def test_another_key_is_never_the_highest(weights: list[float], seed: int) -> None:
    part = toy([[0.0, 1.0]] * len(weights), weights, [0.0, 0.0], pad=seed % 3)
    found = single(part, "other", seed)
    assert not found.same.any()
    assert float(found.difference) >= 0
    assert bool(found.emptied) == (sum(sorted(part.key_weights[0].tolist())[:-1]) == 0)
