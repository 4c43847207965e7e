"""Divergences: against sums over items, against scipy, and at their bounds."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from torch import Tensor

from exegete.measures.divergence import jsd, kl, normalised_entropy, tvd

Weights = Sequence[float]


def slow_kl(p: Weights, q: Weights) -> float:
    total = 0.0
    for a, b in zip(p, q, strict=True):
        if a > 0:
            total += a * math.log(a / b) if b > 0 else math.inf
    return total


def slow_jsd(p: Weights, q: Weights) -> float:
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (slow_kl(p, middle) + slow_kl(q, middle)) / 2


def slow_entropy(p: Weights) -> float:
    return -sum(a * math.log(a) for a in p if a > 0) / math.log(len(p))


def row(weights: Weights) -> Tensor:
    return torch.tensor(weights, dtype=torch.float64)


def normalise(counts: Sequence[int]) -> list[float]:
    return [count / sum(counts) for count in counts]


pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8).filter(
    lambda pairs: all(sum(column) > 0 for column in zip(*pairs, strict=True))
)


@given(pairs)
@settings(deadline=None)
def test_divergences_one_item_at_a_time(counts: list[tuple[int, int]]) -> None:
    p, q = (normalise(column) for column in zip(*counts, strict=True))
    assert tvd(row(p), row(q)).item() == pytest.approx(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert kl(row(p), row(q)).item() == pytest.approx(slow_kl(p, q), abs=1e-12)
    assert jsd(row(p), row(q)).item() == pytest.approx(slow_jsd(p, q), abs=1e-12)
    assert jsd(row(p), row(q)).item() == pytest.approx(float(jensenshannon(p, q)) ** 2, abs=1e-12)
    assert normalised_entropy(row(p)).item() == pytest.approx(slow_entropy(p), abs=1e-12)


def test_bounds() -> None:
    left, right, flat = row([1, 0, 0, 0]), row([0, 0, 1, 0]), row([0.25] * 4)
    assert tvd(left, right).item() == 1
    assert tvd(flat, flat).item() == jsd(flat, flat).item() == kl(flat, flat).item() == 0
    assert jsd(left, right).item() == pytest.approx(math.log(2))
    assert kl(left, flat).item() == pytest.approx(math.log(4))
    assert kl(flat, left).item() == math.inf
    assert normalised_entropy(left).item() == 0
    assert normalised_entropy(flat).item() == pytest.approx(1)


@pytest.mark.parametrize("measure", [tvd, kl, jsd])
def test_absent_items_change_nothing(measure: Callable[[Tensor, Tensor], Tensor]) -> None:
    p, q = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    padded = [torch.nn.functional.pad(x, (1, 2), value=torch.nan) for x in (p, q)]
    assert measure(p, q).shape == (3, 4)
    torch.testing.assert_close(measure(padded[0], padded[1]), measure(p, q))
    torch.testing.assert_close(measure(p, q[0, 0]), measure(p, q[0, 0].expand_as(p)))
    assert measure(torch.full((2, 3), torch.nan), torch.full((2, 3), torch.nan)).isnan().all()


def test_entropy_counts_real_items() -> None:
    p = row([0.5, 0.5, 0, 0])
    assert normalised_entropy(p).item() == pytest.approx(0.5)
    assert normalised_entropy(p, torch.tensor([True, True, False, False])).item() == pytest.approx(1)
    assert normalised_entropy(row([0.5, 0.5, math.nan, math.nan])).item() == pytest.approx(1)
    assert normalised_entropy(p, torch.tensor([True, False, False, False])).isnan()
    assert normalised_entropy(row([1.0])).isnan()
    assert normalised_entropy(torch.empty(2, 0)).isnan().all()


def test_results_are_float64() -> None:
    half = torch.tensor([0.5, 0.5], dtype=torch.float16)
    for measure in (tvd, kl, jsd):
        assert measure(half, half).dtype == torch.float64
    assert normalised_entropy(half).dtype == torch.float64


@pytest.mark.parametrize("bad", [[-0.1, 1.1], [math.inf, 0.0]])
def test_what_is_no_distribution_is_refused(bad: Weights) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        tvd(row([0.5, 0.5]), row(bad))
    with pytest.raises(ValueError, match="finite and not negative"):
        normalised_entropy(row(bad))


def test_a_masked_weight_may_be_anything() -> None:
    assert normalised_entropy(row([0.5, 0.5, -math.inf]), torch.tensor([True, True, False])).item() == pytest.approx(1)


def test_different_items_are_refused() -> None:
    with pytest.raises(ValueError, match="different items"):
        jsd(row([1.0, math.nan]), row([math.nan, 1.0]))
    with pytest.raises(ValueError, match="different items"):
        kl(row([0.5, 0.5]), row([1.0]))
