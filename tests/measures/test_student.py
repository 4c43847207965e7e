"""Intervals of means over texts: bootstrap-t, exact for shares, bounded where nearly all values are one."""

import math

import pytest
import torch
from torch import Tensor

from exegete.measures.proportions import clopper_pearson
from exegete.measures.statistics import crossed_mean
from exegete.measures.student import OFF, off_mode, one_sided


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
    values = skewed(60)
    found = one_sided(values[None], 0.05)
    low, high = slow(values.tolist(), 0.05)
    width = high - low
    assert found.low == pytest.approx(low, abs=0.05 * width)
    assert found.high == pytest.approx(high, abs=0.05 * width)
    assert found.n == 60
    assert found.mean == pytest.approx(values.mean().item())


def test_its_arm_is_longer_where_large_values_are_rare() -> None:
    found = one_sided(skewed(60)[None], 0.05)
    assert found.high - found.mean > 1.2 * (found.mean - found.low)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_each_end_misses_about_as_often_as_it_says(alpha: float) -> None:
    """400 samples of 40 from x⁴, whose mean is 1/5: percentiles would miss three times as often above."""
    found = [one_sided(skewed(40, seed)[None], alpha) for seed in range(400)]
    over, under = sum(i.high < 0.2 for i in found), sum(i.low > 0.2 for i in found)
    at_most = clopper_pearson(round(1.3 * alpha * 400), 400, 0.99)[1] * 400
    assert max(over, under) <= at_most


def test_scales_shifts_and_texts_without_a_value() -> None:
    values = skewed(50) / 4
    plain, moved = one_sided(values[None], 0.05), one_sided((2 * values + 0.1)[None], 0.05)
    assert (moved.low, moved.high) == pytest.approx((2 * plain.low + 0.1, 2 * plain.high + 0.1))
    with_gaps = torch.cat([values, torch.full((10,), math.nan, dtype=torch.float64)])
    gaps = one_sided(with_gaps[None], 0.05)
    assert (gaps.n, gaps.undefined) == (50, 10)
    assert gaps.mean == pytest.approx(plain.mean)
    assert one_sided(torch.full((1, 5), math.nan), 0.05).n == 0


@pytest.mark.parametrize(("hits", "n"), [(20, 20), (40, 40), (30, 40), (12, 200)])
def test_shares_have_their_exact_interval(hits: int, n: int) -> None:
    found = one_sided((torch.arange(n) < hits).double()[None], 0.05)
    assert (found.low, found.high) == clopper_pearson(hits, n, 0.9)
    assert found.low < hits / n  # 20 of 20 is not sure to be all


@pytest.mark.parametrize("hits", [0, 1, OFF - 1])
def test_few_hits_may_hide_as_many_misses_below_zero(hits: int) -> None:
    """One text won and 39 unchanged: a difference of right answers, that has as well lost one as won it."""
    values = (torch.arange(40) < hits).double()
    found = one_sided(values[None], 0.05)
    share = clopper_pearson(40 - hits, 40, 0.9)[0]
    assert (found.low, found.high) == pytest.approx((share - 1, 1 - share))


@pytest.mark.parametrize(("mode", "bound"), [(0.5, 1.0), (0.0, 2.0), (-1.0, 1.0)])
def test_a_sample_of_nearly_one_value_says_how_rare_the_rest_is(mode: float, bound: float) -> None:
    values = torch.full((1, 50), mode, dtype=torch.float64)
    values[0, : OFF - 1] = 0.25
    share = clopper_pearson(50 - OFF + 1, 50, 0.9)[0]
    found = one_sided(values, 0.05, bound)
    assert found.low == pytest.approx(max(-bound, share * mode - (1 - share) * bound))
    assert found.high == pytest.approx(min(bound, share * mode + (1 - share) * bound))
    values[0, OFF - 1] = 0.2  # now they can be studentised, and the interval is much shorter
    assert one_sided(values, 0.05, bound).high - one_sided(values, 0.05, bound).low < found.high - found.low


def test_several_seeds_are_crossed_and_cut() -> None:
    values = torch.stack([skewed(50, seed) for seed in range(3)])
    found, plain = one_sided(values, 0.05), crossed_mean(values, 0.9)
    assert found == plain._replace(low=max(-1.0, plain.low), high=min(1.0, plain.high))


def test_values_that_differ_by_rounding_are_one() -> None:
    assert off_mode(torch.tensor([0.3, 0.3 + 1e-12, 0.4], dtype=torch.float64)) == 1
