"""Search: the objective written slowly, its gradient against autograd, and whole trajectories."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.pooling import open_pooled
from exegete.interventions import search as module
from exegete.interventions.ascent import ABSENT, Climb, Slopes
from exegete.interventions.search import (
    Adversaries,
    Search,
    find,
    find_each,
    first_log_weights,
    objective,
    watch_search,
)
from exegete.models.capabilities import Encoded
from exegete.models.openings import OpenedPooling, decoder
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example
from tests.small import small_model, texts

EXAMPLES = texts(40)
BINARY = "bilstm:size=7,hidden=6,scale=1"
THREE = ("a", "b", "c")


def pools_of(model: PoolingClassifier, examples: tuple[Example, ...] = EXAMPLES) -> list[OpenedPooling]:
    return [p.opened for p in open_pooled(model, examples) if isinstance(p.opened, OpenedPooling)]


def jsd(p: list[float], q: list[float]) -> float:
    """Straight from the definition."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        m = (a + b) / 2
        total += (a * math.log(a / m) if a else 0) / 2 + (b * math.log(b / m) if b else 0) / 2
    return total


def slow_objective(weights: Tensor, original: Tensor, p: Tensor, own: Tensor) -> list[float]:
    """The search of Jain & Wallace (2019, section 4.2.2), text by text and candidate by candidate."""
    found = []
    for text in range(len(weights)):
        candidates, f = weights[text].tolist(), 0.0
        for k, a in enumerate(candidates):
            change = [abs(x - y) for x, y in zip(p[text, k].tolist(), own[text].tolist(), strict=True)]
            d = change[1] if len(change) == 2 else sum(change)
            f += -jsd(a, original[text].tolist()) + 500 * max(0.0, d - 0.01)
        between = [jsd(a, b) for a in candidates for b in candidates]
        found.append(f - sum(between) / len(between))
    return found


@pytest.mark.parametrize("classes", [2, 4])
def test_the_objective_written_slowly(classes: int) -> None:
    torch.manual_seed(classes)
    weights, original = torch.randn(3, 4, 6).double().softmax(-1), torch.randn(3, 6).double().softmax(-1)
    p, own = torch.randn(3, 4, classes).double().softmax(-1), torch.randn(3, classes).double().softmax(-1)
    found = objective(weights[:, :, None], original[:, None], p, own, Search(count=4))
    assert found.tolist() == pytest.approx(slow_objective(weights, original, p, own), abs=1e-10)


def test_divergences_of_several_heads_are_averaged() -> None:
    """With JSD linear in its heads, two heads give the mean of both objectives: the penalty is the same in each."""
    torch.manual_seed(3)
    weights, original = torch.randn(3, 4, 2, 6).double().softmax(-1), torch.randn(3, 2, 6).double().softmax(-1)
    p, own = torch.randn(3, 4, 2).double().softmax(-1), torch.randn(3, 2).double().softmax(-1)
    found = objective(weights, original, p, own, Search(count=4))
    alone = [torch.tensor(slow_objective(weights[:, :, h], original[:, h], p, own)) for h in range(2)]
    torch.testing.assert_close(found, ((alone[0] + alone[1]) / 2).double(), atol=1e-4, rtol=1e-6)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 7), st.integers(2, 6), st.sampled_from([2, 3, 5]), st.integers(0, 1000))
def test_the_gradient_is_that_of_autograd(count: int, keys: int, classes: int, seed: int) -> None:
    torch.manual_seed(seed)
    x = 2 * torch.randn(3, count, keys, dtype=torch.float64)
    values, bias = 3 * torch.randn(3, keys, classes).double(), torch.randn(3, classes).double()
    original = torch.randn(3, keys).double().softmax(-1)
    search = Search(count=count)

    def f(x: Tensor) -> Tensor:
        weights = x.softmax(-1)
        p = (weights @ values + bias[:, None]).softmax(-1)
        return objective(weights[:, :, None], original[:, None], p, own, search).sum()

    own = (original[:, None] @ values + bias[:, None]).softmax(-1)[:, 0]
    leaf = x.clone().requires_grad_()
    f(leaf).backward()
    v, b, p = (
        (values, bias, own)
        if classes > 2
        else (values[..., 1:] - values[..., :1], bias[:, 1:] - bias[:, :1], own[:, 1:])
    )
    slopes = Slopes(v.permute(2, 1, 0).contiguous(), b.T.contiguous(), p.T.contiguous())
    climb = Climb(x.permute(1, 2, 0).contiguous(), original.T.contiguous(), slopes, search.rates)
    assert leaf.grad is not None
    torch.testing.assert_close(climb.gradient().permute(2, 0, 1), leaf.grad, atol=1e-8, rtol=1e-8)


def slow_search(model: PoolingClassifier, pool: OpenedPooling, search: Search, more: Tensor | float = 0.0) -> Tensor:
    """The same steps on the words alone, by autograd and torch's own Adam: weights [batch, candidate, 1, key]."""
    real, values = pool.encoded.mask[0], pool.encoded.values  # texts of one length have the same mask
    assert values is not None
    values, bias = values[:, real].double(), model.two_sided(model.decoder.bias).detach().double() + more
    original = pool.weights[:, 0, real]
    own = (original[:, None] @ values + bias).softmax(-1)[:, 0]
    x = first_log_weights(pool.encoded.mask, pool.ids, search)[:, :, 0, real].requires_grad_()
    adam = torch.optim.Adam([x], lr=search.lr, amsgrad=True)
    for _ in range(search.steps):
        weights = x.softmax(-1)
        p = (weights @ values + bias).softmax(-1)
        loss = objective(weights[:, :, None], original[:, None], p, own, search).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    found = torch.zeros(len(x), search.count, len(real), dtype=torch.float64)
    found[..., real] = x.detach().softmax(-1)
    return found[:, :, None]


@pytest.mark.parametrize(
    ("spec", "labels", "wrap"),
    [
        (BINARY, ("no", "yes"), False),
        (BINARY, THREE, False),
        (BINARY + ",attention=dot,projection=sparsemax", THREE, True),
    ],
)
def test_the_same_trajectory_as_autograd(spec: str, labels: tuple[str, ...], wrap: bool) -> None:
    model, search = small_model(spec, EXAMPLES, wrap=wrap, labels=labels), Search(steps=12)
    pools = pools_of(model)
    single, double = find_each(pools, search), find_each(pools, search, torch.float64)
    for pool, ours, exact in zip(pools, single, double, strict=True):
        theirs = slow_search(model, pool, search)
        torch.testing.assert_close(exact.weights, theirs, atol=1e-7, rtol=0)
        torch.testing.assert_close(ours.weights, theirs, atol=1e-5, rtol=0)


class Bent(PoolingClassifier):
    """A decoder that is not linear: its logits' cubes."""

    def encode(self, *of: Any, **settings: Any) -> Encoded:
        encoded = super().encode(*of, **settings)
        return encoded._replace(values=None)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        z: Tensor = self.decoder((weights @ encoded.states).float())
        return self.two_sided(z + z**3)


class Straight(Bent):
    """A linear decoder that doesn't say so."""

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        return self.two_sided(self.decoder((weights @ encoded.states).float()))


@pytest.mark.parametrize("wrap", [False, True])
def test_autograd_serves_a_decoder_that_is_not_linear(wrap: bool) -> None:
    model, search = small_model(BINARY, EXAMPLES, wrap=wrap), Search(steps=8)
    linear = find_each(pools_of(model), search)
    model.__class__ = Straight
    for a, b in zip(linear, find_each(pools_of(model), search), strict=True):
        torch.testing.assert_close(a.weights, b.weights, atol=1e-5, rtol=0)
        torch.testing.assert_close(a.tvd, b.tvd, atol=1e-5, rtol=0)
    model.__class__ = Bent
    pool = pools_of(model)[-1]
    found = find(pool, Search(steps=60, lr=0.1))
    assert (found.tvd <= 0.05).any(1).double().mean() > 0.8
    with torch.no_grad():
        both = torch.cat([pool.weights[:, None], found.weights], 1)
        p = model.decode(pool.encoded, both[:, :, 0]).softmax(-1).double()
    torch.testing.assert_close(found.tvd, (p[:, 1:, 1] - p[:, :1, 1]).abs(), atol=1e-6, rtol=0)


class Half(PoolingClassifier):
    """A decoder that is linear in the weights, but heeds them by half, whatever `values` say."""

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        uniform = encoded.mask[:, None] / encoded.mask.sum(-1)[:, None, None]
        return super().decode(encoded, (weights + uniform.to(weights.dtype)) / 2)


def test_a_decoder_that_heeds_weights_by_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 2)
    model, search = small_model(BINARY, EXAMPLES), Search(steps=8)
    model.__class__ = Half
    pools = pools_of(model)
    for pool, found in zip(pools, find_each(pools, search, torch.float64), strict=True):
        words, values = pool.encoded.mask.sum(-1)[:, None, None], pool.encoded.values
        assert values is not None
        v = values.double()

        def heeded(weights: Tensor, v: Tensor = v, words: Tensor = words) -> Tensor:
            return ((weights + 1 / words) / 2 @ v + model.two_sided(model.decoder.bias).double()).softmax(-1).detach()

        p, q = heeded(found.weights[:, :, 0]), heeded(pool.weights)
        torch.testing.assert_close(found.tvd, (p - q).abs().sum(-1) / 2, atol=1e-9, rtol=0)
        half = replace(pool, encoded=pool.encoded._replace(values=values / 2))
        moved = slow_search(model, half, search, (v / 2).mean(1, keepdim=True))
        torch.testing.assert_close(found.weights, moved, atol=1e-7, rtol=0)


def test_numbers_are_those_of_the_weights() -> None:
    model = small_model(BINARY, EXAMPLES, labels=THREE)
    for pool, found in zip(pools_of(model), find_each(pools_of(model), Search(steps=5)), strict=True):
        assert found.weights.dtype == found.tvd.dtype == found.jsd.dtype == torch.float64
        torch.testing.assert_close(found.weights.sum(-1), torch.ones_like(found.tvd)[..., None])
        p, q = (model.decode(pool.encoded, w).softmax(-1) for w in (found.weights[:, :, 0], pool.weights))
        torch.testing.assert_close(found.tvd, (p - q).abs().sum(-1) / 2, atol=1e-9, rtol=0)
        slow = [
            [jsd(a, own) for a in some]
            for some, own in zip(found.weights[:, :, 0].tolist(), pool.weights[:, 0].tolist(), strict=True)
        ]
        torch.testing.assert_close(found.jsd, torch.tensor(slow).double(), atol=1e-6, rtol=0)


def test_batches_and_padding_change_nothing() -> None:
    """But for rounding, of which 60 steps in double precision make nothing: a last bit of a sum is the CPU's."""
    model, search = small_model(BINARY, EXAMPLES), Search(steps=60)
    pools = pools_of(model)
    together = find_each(pools, search, torch.float64)
    pool, found = pools[4], together[4]
    for row in range(len(pool.ids)):
        some = slice(row, row + 1)
        encoded = Encoded(*(None if part is None else part[some] for part in pool.encoded))  # type: ignore[arg-type]
        alone = find_each([decoder(model, encoded, pool.ids[some], pool.weights[some, 0])], search, torch.float64)[0]
        torch.testing.assert_close(alone.weights, found.weights[some], atol=1e-9, rtol=0)
    padded = Encoded(*(None if part is None else _padded(part) for part in pool.encoded))  # type: ignore[arg-type]
    again = find_each([decoder(model, padded, pool.ids, _padded(pool.weights[:, 0]))], search, torch.float64)[0]
    torch.testing.assert_close(again.weights[..., 3:-40], found.weights, atol=1e-9, rtol=0)
    assert not again.weights[..., :3].any()
    assert not again.weights[..., -40:].any()


def _padded(part: Tensor) -> Tensor:
    before, after = (part.new_full((len(part), n, *part.shape[2:]), 0) for n in (3, 40))
    return torch.cat([before, part, after], 1)


def test_many_groups_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, search = small_model(BINARY, EXAMPLES), Search(steps=20)
    whole = find_each(pools_of(model, texts(150)), search, torch.float64)
    monkeypatch.setattr(module, "ROOM", 1)
    for a, b in zip(whole, find_each(pools_of(model, texts(150)), search, torch.float64), strict=True):
        torch.testing.assert_close(a.weights, b.weights, atol=1e-9, rtol=0)


def test_the_best_is_within_epsilon() -> None:
    tvd = torch.tensor([[0.005, 0.03, 0.2], [0.3, 0.3, 0.3], [0.0, 0.01, 0.0]], dtype=torch.float64)
    jsd = torch.tensor([[0.1, 0.4, 0.6], [0.5, 0.5, 0.5], [0.0, 0.2, 0.1]], dtype=torch.float64)
    found = Adversaries(torch.zeros(3, 3, 1, 2), tvd, jsd)
    assert found.best(0.01).tolist() == [0, -1, 1]
    assert found.best(0.05).tolist() == [1, -1, 1]


def test_the_first_log_weights_are_normal_and_keyed() -> None:
    mask = torch.ones(2000, 4, dtype=torch.bool)
    mask[:, 1] = False
    drawn = first_log_weights(mask, torch.arange(2000), Search(seed=1))
    real = drawn[..., [0, 2, 3]]
    assert real.mean().abs() < 0.1
    assert real.std() == pytest.approx(3, abs=0.05)
    assert (drawn[..., 1] == ABSENT).all()
    assert not torch.equal(drawn, first_log_weights(mask, torch.arange(2000), Search(seed=2)))
    there = torch.tensor([[True, True, False, True]]).expand(2000, -1)
    heads = first_log_weights(mask, torch.arange(2000), Search(seed=1), there)
    assert torch.equal(heads[:, :, :1], drawn)
    assert torch.corrcoef(heads[..., 0].flatten(0, 1).T)[0, 1].abs() < 0.05
    fewer = first_log_weights(mask, torch.arange(2000), Search(seed=1), there[:, [0, 1, 3]])
    assert torch.equal(fewer, heads[:, :, [0, 1, 3]])  # a head that is padding changes no other


@pytest.mark.parametrize("wrong", [{"count": 0}, {"steps": 0}, {"lr": 0.0}, {"strength": -1.0}, {"tolerance": -0.1}])
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a search for adversaries needs"):
        Search(**wrong)


@pytest.mark.parametrize("linear", [True, False])
def test_a_watched_search_ends_where_the_search_ends(linear: bool) -> None:
    pool = pools_of(small_model(BINARY, EXAMPLES))[-1]
    texts = pool if linear else replace(pool, values=None)  # automatic differentiation asks no values
    search = Search(count=3, steps=25)
    steps, seen = zip(*watch_search(texts, search, every=10), strict=True)
    assert steps == (10, 20, 25)
    for ours, theirs in zip(seen[-1], find(texts, search), strict=True):
        assert torch.equal(ours, theirs)
    assert not torch.equal(seen[0].weights, seen[-1].weights)
