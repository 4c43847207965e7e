"""Divergences: against sums over items, against scipy, and at their bounds."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from torch import Tensor

from exegete.measures.divergence import jsd, kl, normalised_entropy, tvd
from tests.twins import Lists, items, twin_of

Weights = Sequence[float]


def normalise(counts: Sequence[int]) -> list[float]:
    return [count / sum(counts) for count in counts]


def weights(lists: int) -> st.SearchStrategy[Lists]:
    """Distributions over the same 2 to 8 items, some of them 0."""
    counts = items(*[st.integers(0, 9)] * lists, least=2, most=8).filter(lambda rows: all(map(sum, rows)))
    return counts.map(lambda rows: tuple(normalise([int(x) for x in row]) for row in rows))


@twin_of(tvd, weights(2))
def slow_tvd(p: Weights, q: Weights) -> float:
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


@twin_of(kl, weights(2))
def slow_kl(p: Weights, q: Weights) -> float:
    total = 0.0
    for a, b in zip(p, q, strict=True):
        if a > 0:
            total += a * math.log(a / b) if b > 0 else math.inf
    return total


@twin_of(jsd, weights(2))
def slow_jsd(p: Weights, q: Weights) -> float:
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (slow_kl(p, middle) + slow_kl(q, middle)) / 2


@twin_of(jsd, weights(2), close=1e-9)
def jsd_of_scipy(p: Weights, q: Weights) -> float:
    return float(jensenshannon(p, q)) ** 2


@twin_of(normalised_entropy, weights(1))
def slow_entropy(p: Weights) -> float:
    return -sum(a * math.log(a) for a in p if a > 0) / math.log(len(p))


def row(weights: Weights) -> Tensor:
    return torch.tensor(weights, dtype=torch.float64)


def test_bounds() -> None:
    left, right, flat = row([1, 0, 0, 0]), row([0, 0, 1, 0]), row([0.25] * 4)
    assert tvd(left, right).item() == 1
    assert tvd(flat, flat).item() == jsd(flat, flat).item() == kl(flat, flat).item() == 0
    assert jsd(left, right).item() == pytest.approx(math.log(2))
    assert kl(left, flat).item() == pytest.approx(math.log(4))
    assert kl(flat, left).item() == math.inf
    assert normalised_entropy(left).item() == 0
    assert normalised_entropy(flat).item() == pytest.approx(1)
