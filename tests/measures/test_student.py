"""The bootstrap-t of means over texts: where values spread and there are enough of them; elsewhere bounded."""

import math

import pytest
import torch
from torch import Tensor

from exegete.measures.bounds import bounded_mean
from exegete.measures.proportions import clopper_pearson
from exegete.measures.student import FEW, OFF, off_mode, one_sided


def skewed(n: int, seed: int = 0) -> Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).pow(4)


def slow(values: list[float], alpha: float, draws: int = 4000) -> tuple[float, float]:
    """Bootstrap-t as Efron wrote it, sample by sample, with samples of its own."""
    n, picks = len(values), torch.Generator().manual_seed(7)
    mean = sum(values) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    drawn = []
    for _ in range(draws):
        sample = [values[i] for i in torch.randint(n, (n,), generator=picks).tolist()]
        own = sum(sample) / n
        error = math.sqrt(sum((v - own) ** 2 for v in sample) / (n - 1) / n)
        drawn.append((own - mean) / error)
    drawn.sort()
    return mean - drawn[math.ceil((1 - alpha) * draws) - 1] * spread, mean - drawn[math.floor(alpha * draws)] * spread


def test_it_is_the_bootstrap_of_t() -> None:
    values = skewed(FEW)
    found = one_sided(values[None], 0.05)
    low, high = slow(values.tolist(), 0.05)
    width = high - low
    assert found.low == pytest.approx(low, abs=0.05 * width)
    assert found.high == pytest.approx(high, abs=0.05 * width)
    assert found.n == FEW
    assert found.mean == pytest.approx(values.mean().item())


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_each_end_misses_about_as_often_as_it_says(alpha: float) -> None:
    """400 samples from x⁴, whose mean is 1/5."""
    found = [one_sided(skewed(FEW, seed)[None], alpha) for seed in range(400)]
    over, under = sum(i.high < 0.2 for i in found), sum(i.low > 0.2 for i in found)
    assert max(over, under) <= clopper_pearson(round(1.3 * alpha * 400), 400, 0.99)[1] * 400


@pytest.mark.parametrize(
    "values",
    [
        skewed(FEW - 1),  # too few
        torch.cat([torch.full((FEW,), 0.5, dtype=torch.float64), skewed(OFF - 1)]),  # hardly any differ
        (torch.arange(FEW) < 30).double(),  # a share
    ],
)
def test_elsewhere_it_is_the_bounded_one(values: Tensor) -> None:
    assert one_sided(values[None], 0.05) == bounded_mean(values[None], 0.05)


def test_without_a_bound_it_is_all_there_is() -> None:
    found = one_sided(10 * skewed(60)[None], 0.05, math.inf)
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)


@pytest.mark.parametrize("values", [1 - 1e-4 * skewed(60), torch.full((60,), 0.9, dtype=torch.float64), skewed(2)])
def test_values_that_hardly_differ_have_an_interval_without_a_bound_too(values: Tensor) -> None:
    found = one_sided(values[None], 0.05, math.inf)
    assert -math.inf < found.low <= found.mean <= found.high < math.inf


def test_a_few_that_lie_far_off_do_not_make_it_endless() -> None:
    """Samples without them hardly spread: t* alone reaches far below what bounded values can."""
    values = 1 - 0.01 * skewed(FEW)
    values[:1] = -0.5
    found = one_sided(values[None], 0.05)
    assert slow(values.tolist(), 0.05)[0] < bounded_mean(values[None], 0.05).low == found.low


def test_several_seeds_are_crossed() -> None:
    values = torch.stack([skewed(FEW, seed) for seed in range(3)])
    assert one_sided(values, 0.05) == bounded_mean(values, 0.05)


def test_values_that_differ_by_rounding_are_one() -> None:
    assert off_mode(torch.tensor([0.3, 0.3 + 1e-12, 0.4], dtype=torch.float64)) == 1
