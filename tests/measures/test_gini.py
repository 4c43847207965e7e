"""Γ against a slow double loop, and what its docstring says of it."""

import itertools
import math
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.measures.gini import gini_correlation
from tests.twins import items, twin_of

sizes = st.lists(st.integers(0, 6).map(lambda x: x / 2), min_size=2, max_size=7)
pairs = sizes.flatmap(lambda e: st.tuples(st.just(e), st.lists(st.integers(0, 4), min_size=len(e), max_size=len(e))))
few = items(st.integers(0, 4), st.integers(0, 6).map(lambda x: x / 2), least=2, most=7)


@twin_of(gini_correlation, few)
def slow(scores: list[float], effects: list[float]) -> float:
    """Schechtman & Yitzhaki's ratio, with mid-ranks counted one by one."""
    n = len(effects)

    def ranks(values: list[float]) -> list[float]:
        return [1 + sum(u < v for u in values) + (sum(u == v for u in values) - 1) / 2 for v in values]

    def covered(order: list[float]) -> float:
        return sum((2 * r - n - 1) * e for r, e in zip(ranks(order), effects, strict=True))

    return covered(scores) / covered(effects) if len(set(effects)) > 1 else math.nan


@twin_of(gini_correlation, few)
def weighted_kendall(scores: list[float], effects: list[float]) -> float:
    """Σ sign(s_t − s_u) sign(e_t − e_u) |e_t − e_u| / Σ |e_t − e_u| over pairs."""
    above = below = 0.0
    for t, u in itertools.combinations(range(len(effects)), 2):
        apart = effects[t] - effects[u]
        above += ((scores[t] > scores[u]) - (scores[t] < scores[u])) * apart
        below += abs(apart)
    return above / below if below else math.nan


def gamma(scores: list[float], effects: list[float]) -> float:
    return gini_correlation(torch.tensor(scores, dtype=torch.float64), torch.tensor(effects)).item()


@settings(deadline=None)
@given(sizes.filter(lambda e: len(set(e)) > 1 and len(e) <= 6))
def test_chance_is_zero_the_own_order_one_and_its_reverse_minus_one(effects: list[float]) -> None:
    orders = torch.tensor(list(itertools.permutations(range(len(effects))))).double()
    every = gini_correlation(orders, torch.tensor(effects).expand_as(orders))
    assert every.mean().item() == pytest.approx(0.0, abs=1e-12)
    assert every.max().item() == pytest.approx(1.0)
    assert gamma(effects, effects) == pytest.approx(1.0)
    assert gamma([-e for e in effects], effects) == pytest.approx(-1.0)
    assert gamma([1.0] * len(effects), effects) == 0.0


@settings(deadline=None)
@given(pairs, st.randoms())
def test_how_words_of_equal_effects_are_ordered_makes_no_difference(
    pair: tuple[list[float], list[int]], random: Random
) -> None:
    """Scores are dealt anew among words of equal effects."""
    effects, scores = pair[0], [float(s) for s in pair[1]]
    dealt = list(scores)
    for level in set(effects):
        places = [i for i, e in enumerate(effects) if e == level]
        mixed = random.sample(places, len(places))
        for place, other in zip(places, mixed, strict=True):
            dealt[place] = scores[other]
    assert gamma(dealt, effects) == pytest.approx(gamma(scores, effects), nan_ok=True)


@settings(deadline=None)
@given(sizes.filter(lambda e: len(set(e)) > 1), st.randoms())
def test_where_effects_add_it_is_the_scaled_area_of_removal(effects: list[float], random: Random) -> None:
    """(AOPC − AOPC of random) / (best AOPC − AOPC of random), over all k."""
    n, order = len(effects), random.sample(range(len(effects)), len(effects))

    def aopc(first: list[int]) -> float:
        return sum(sum(effects[i] for i in first[:k]) for k in range(1, n + 1)) / n

    by_chance = sum(k * sum(effects) / n for k in range(1, n + 1)) / n
    best = aopc(sorted(range(n), key=lambda i: -effects[i]))
    scores = [0.0] * n
    for place, word in enumerate(order):
        scores[word] = float(n - place)
    assert gamma(scores, effects) == pytest.approx((aopc(order) - by_chance) / (best - by_chance))


def test_rows_and_words_that_are_not_there() -> None:
    effects = torch.tensor([[3.0, 1.0, 0.0, math.nan], [1.0, 1.0, 1.0, 1.0]])
    scores = torch.tensor([[0.3, 0.6, 0.1, 9.0], [0.1, 0.2, 0.3, 0.4]])
    found: Tensor = gini_correlation(scores, effects)
    assert found[0].item() == pytest.approx(1 / 3)
    assert math.isnan(found[1].item())
    assert gini_correlation(scores[:, :3], effects[:, :3])[0].item() == found[0].item()
