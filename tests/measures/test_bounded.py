"""Intervals of means over texts: bounded, whatever was not seen; exact for shares; crossed for seeds."""

import math

import pytest
import torch
from torch import Tensor

from exegete.measures.bounds import HITS, bounded_mean
from exegete.measures.proportions import clopper_pearson
from exegete.measures.statistics import crossed_mean


def skewed(n: int, seed: int = 0) -> Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).pow(4)


def slow(values: list[float], alpha: float, bound: float, draws: int = 4000) -> float:
    """The upper end of Learned-Miller & Thomas (2019), draw by draw, with uniform numbers of its own."""
    picks, placed = torch.Generator().manual_seed(3), [*sorted(values), bound]
    drawn = []
    for _ in range(draws):
        u = sorted(torch.rand(len(values), generator=picks, dtype=torch.float64).tolist())
        drawn.append(bound - sum(u[i] * (placed[i + 1] - placed[i]) for i in range(len(values))))
    end: float = sorted(drawn)[math.ceil((1 - alpha) * draws) - 1]
    return end


def nearly_one_value(mode: float) -> Tensor:
    values = torch.full((50,), mode, dtype=torch.float64)
    values[:5] = 0.25
    return values


@pytest.mark.parametrize("values", [skewed(60), nearly_one_value(0.5), nearly_one_value(-1.0), -skewed(40)])
@pytest.mark.parametrize(("alpha", "bound"), [(0.05, 1.0), (0.01, 2.0)])
def test_it_is_the_quantile_over_unknown_probabilities(values: Tensor, alpha: float, bound: float) -> None:
    found, mean = bounded_mean(values[None], alpha, bound), values.mean().item()
    high, low = slow(values.tolist(), alpha, bound), -slow((-values).tolist(), alpha, bound)
    assert found.high - mean == pytest.approx(high - mean, rel=0.1)
    assert mean - found.low == pytest.approx(mean - max(low, -bound), rel=0.1)
    assert found.n == len(values)
    assert found.mean == pytest.approx(mean)


def test_its_arm_is_longer_where_more_can_be_missed() -> None:
    found, wider = bounded_mean(skewed(60)[None], 0.05), bounded_mean(skewed(60)[None], 0.05, 2.0)
    assert wider.high > found.high
    assert wider.low < found.low
    assert bounded_mean(skewed(60)[None], 0.05, math.inf).high == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_no_end_misses_more_often_than_it_says(alpha: float) -> None:
    """400 samples of 40 from x⁴, whose mean is 1/5: percentiles would miss three times as often above."""
    found = [bounded_mean(skewed(40, seed)[None], alpha) for seed in range(400)]
    over, under = sum(i.high < 0.2 for i in found), sum(i.low > 0.2 for i in found)
    assert max(over, under) <= clopper_pearson(round(alpha * 400), 400, 0.99)[1] * 400


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.1])
def test_what_is_rare_and_was_not_seen_is_not_forgotten(share: float) -> None:
    """Close to 1 but for a rare −1: of samples that show none, too, the mean must lie above the lower end."""
    missed = 0
    for seed in range(400):
        of = torch.Generator().manual_seed(seed)
        near = 1 - 0.1 * torch.rand(60, generator=of, dtype=torch.float64)
        values = torch.where(torch.rand(60, generator=of) < share, -torch.ones_like(near), near)
        missed += bounded_mean(values[None], 0.05).low > 0.95 * (1 - share) - share
    assert missed <= clopper_pearson(round(0.05 * 400), 400, 0.99)[1] * 400


def test_texts_without_a_value_are_left_out() -> None:
    values = skewed(50)
    gaps = bounded_mean(torch.cat([values, torch.full((10,), math.nan)])[None], 0.05)
    assert (gaps.n, gaps.undefined) == (50, 10)
    assert gaps[:3] == bounded_mean(values[None], 0.05)[:3]
    assert bounded_mean(torch.full((1, 5), math.nan), 0.05).n == 0


@pytest.mark.parametrize(("hits", "n"), [(20, 20), (40, 40), (30, 40), (12, 200)])
def test_shares_have_their_exact_interval(hits: int, n: int) -> None:
    found = bounded_mean((torch.arange(n) < hits).double()[None], 0.05)
    assert (found.low, found.high) == clopper_pearson(hits, n, 0.9)
    assert found.low < hits / n  # 20 of 20 is not sure to be all


@pytest.mark.parametrize("hits", [0, 1, HITS - 1])
def test_of_hits_and_misses_the_bound_is_exact(hits: int) -> None:
    """Values 0 and 1 with the bound 1: Clopper & Pearson's upper end, to the noise of the draws."""
    values = (torch.arange(40) < hits).double()
    assert bounded_mean(values[None], 0.05).high == pytest.approx(clopper_pearson(hits, 40, 0.9)[1], abs=0.006)


@pytest.mark.parametrize("hits", [0, 1, 3])
def test_few_hits_may_hide_as_many_misses_below_zero(hits: int) -> None:
    """One text won and 39 unchanged: a difference of right answers, that has as well lost one as won it."""
    assert bounded_mean((torch.arange(40) < hits).double()[None], 0.05).low < 0


def test_several_seeds_are_crossed_and_cut() -> None:
    values = torch.stack([skewed(50, seed) for seed in range(3)])
    found, plain = bounded_mean(values, 0.05), crossed_mean(values, 0.9)
    assert found == plain._replace(low=max(-1.0, plain.low), high=min(1.0, plain.high))
