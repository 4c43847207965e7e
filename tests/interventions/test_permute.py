"""Permute: all orders, equally often, of the real keys alone, whatever the batch."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from exegete.base.noise import keyed_integers, stable_seed
from exegete.interventions import permute
from exegete.interventions.permute import Permute, permuted
from tests.interventions.sites import PROJECTIONS, random_site


def slow_orders(row: list[float], real: list[bool], example: int, seed: int, draws: int) -> list[list[float]]:
    """The same in plain loops: real keys sorted by their hash; the j-th of them goes to the j-th real place."""
    places = [i for i, is_real in enumerate(real) if is_real]
    found = []
    for draw in range(draws):
        keys = [int(keyed_integers(stable_seed("permuted", seed), example, draw, j + 1)) for j in range(len(places))]
        order = sorted(range(len(places)), key=lambda j: keys[j])
        moved = [0.0] * len(row)
        for target, j in zip(places, order, strict=True):
            moved[target] = row[places[j]]
        found.append(moved)
    return found


@given(seed=st.integers(0, 10_000), keys=st.integers(1, 9))
@settings(max_examples=15, deadline=None)
def test_against_plain_loops(seed: int, keys: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    weights = torch.rand(4, keys, generator=draw, dtype=torch.float64)
    mask = torch.rand(4, keys, generator=draw) < 0.7
    ids = torch.tensor([3, 1, 4, 15])
    found = permuted(weights, mask, ids, seed, 5)
    for i in range(4):
        assert found[i].tolist() == slow_orders(weights[i].tolist(), mask[i].tolist(), int(ids[i]), seed, 5)


def test_every_order_is_equally_likely() -> None:
    """χ² of 24 orders of 4 weights over texts and draws; a bias of the hash or of the sort would show."""
    weights = torch.arange(4.0).expand(60, 4)
    found = permuted(weights, torch.ones(60, 4).bool(), torch.arange(60), 0, 200).view(-1, 4)
    orders = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    counts = [0] * 24
    for row in found.long().tolist():
        counts[orders[tuple(row)]] += 1
    assert stats.chisquare(counts).pvalue > 1e-3


def test_the_batch_the_padding_and_the_number_of_draws_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, ids = torch.rand(7, 5), torch.arange(7) + 20
    mask = torch.arange(5) < torch.tensor([1, 2, 3, 4, 5, 5, 0])[:, None]
    weights = weights * mask
    whole = permuted(weights, mask, ids, 1, 6)
    wide = permuted(torch.nn.functional.pad(weights, (2, 3)), torch.nn.functional.pad(mask, (2, 3)), ids, 1, 6)
    assert torch.equal(wide[..., 2:7], whole)
    assert float(wide.sum()) == pytest.approx(float(whole.sum()))
    assert torch.equal(permuted(weights, mask, ids, 1, 9)[:, :6], whole)
    assert torch.equal(permuted(weights[3:4], mask[3:4], ids[3:4], 1, 6), whole[3:4])
    monkeypatch.setattr(permute, "ROOM", 1)
    assert torch.equal(permuted(weights, mask, ids, 1, 6), whole)
    assert not torch.equal(permuted(weights, mask, ids, 2, 6), whole)


def test_nothing_to_permute() -> None:
    one = permuted(torch.ones(1, 1), torch.ones(1, 1).bool(), torch.tensor([0]), 0, 3)
    assert one.tolist() == [[[1.0], [1.0], [1.0]]]
    none = permuted(torch.zeros(2, 3), torch.zeros(2, 3).bool(), torch.tensor([0, 1]), 0, 3)
    assert none.shape == (2, 3, 3)
    assert not none.any()
    assert permuted(torch.zeros(0, 3), torch.zeros(0, 3).bool(), torch.zeros(0).long(), 0, 2).shape == (0, 2, 3)


@given(seed=st.integers(0, 10_000), sparse=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_same_weights_in_every_row(seed: int, sparse: bool) -> None:
    site = random_site(seed, PROJECTIONS[sparse])
    torch.testing.assert_close(Permute(seed=seed)(site).sort(-1).values, site.weights.sort(-1).values)


def test_gradients_find_their_way() -> None:
    site = random_site(0, PROJECTIONS[0])
    weights = site.weights.clone().requires_grad_()
    factor = torch.rand(weights.shape)
    (Permute()(site._replace(weights=weights)) * factor).sum().backward()
    assert weights.grad is not None
    real = site.mask.expand_as(weights)
    torch.testing.assert_close(
        weights.grad.masked_fill(~real, 0).sum(-1), factor.masked_fill(~real, 0).sum(-1)
    )  # every real weight stands on one real key
