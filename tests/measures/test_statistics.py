"""Intervals: known answers, undefined values, and how often they hold the truth in simulation."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from exegete.measures import statistics
from exegete.measures.statistics import (
    Interval,
    bootstrap_mean,
    clip_interval,
    crossed_mean,
    nested_mean,
    paired_difference,
    t_interval,
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_the_bootstrap_agrees_with_scipys() -> None:
    values = normal(200).exp()
    ours = bootstrap_mean(values, level=0.9, draws=20000)
    theirs = stats.bootstrap(
        (values.numpy(),), np.mean, confidence_level=0.9, n_resamples=20000, method="percentile", rng=0
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean().item())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert (ours.n, ours.undefined) == (200, 0)


def test_the_bootstrap_of_two_values_by_hand() -> None:
    # Means of two draws from {0, 1}: 0, ½, 1 with probabilities ¼, ½, ¼.
    assert bootstrap_mean(torch.tensor([0.0, 1.0])) == Interval(0.5, 0, 1, 2, 0)
    assert bootstrap_mean(torch.tensor([0.0, 1.0]), level=0.4) == Interval(0.5, 0.5, 0.5, 2, 0)
    assert bootstrap_mean(torch.tensor([3.0])) == Interval(3, 3, 3, 1, 0)


def test_undefined_values_are_counted_and_left_out() -> None:
    values = normal(50)
    holes = torch.cat([torch.tensor([math.nan]), values, torch.tensor([math.nan] * 2)])
    for interval in (bootstrap_mean, t_interval):
        assert interval(holes) == interval(values)._replace(undefined=3)
        nothing = interval(torch.full((4,), math.nan))
        assert (nothing.n, nothing.undefined) == (0, 4)
        assert all(map(math.isnan, nothing[:3]))
        assert interval(torch.empty(0)).n == 0


def test_seeds_decide_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal(50)
    assert bootstrap_mean(values) == bootstrap_mean(values)
    assert bootstrap_mean(values) != bootstrap_mean(values, seed=1)
    whole = bootstrap_mean(values, draws=500)
    statistics._counts.cache_clear()
    monkeypatch.setattr(statistics, "VALUES", 500)  # ten samples at a time
    assert bootstrap_mean(values, draws=500) == pytest.approx(whole)


def test_samples_that_are_kept_give_what_samples_drawn_anew_give(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics._counts.cache_clear()
    first, second = normal(300), normal(300) ** 2
    kept = [bootstrap_mean(values, draws=400) for values in (first, second)]
    assert statistics._counts.cache_info()[:2] == (1, 1)  # one hit, one miss
    assert bool((statistics._counts(300, 400, 0).sum(1, dtype=torch.int64) == 300).all())  # no byte has overflowed
    monkeypatch.setattr(statistics, "KEPT", 0)
    for values, found in zip((first, second), kept, strict=True):
        assert bootstrap_mean(values, draws=400) == pytest.approx(found, abs=1e-12)
    assert statistics._counts.cache_info().misses == 1


def test_paired_differences() -> None:
    a, b = normal(40, seed=1), normal(40, seed=2)
    assert paired_difference(a, b) == bootstrap_mean(a - b)
    a[3], b[5] = math.nan, math.nan
    assert paired_difference(a, b).undefined == 2
    with pytest.raises(ValueError, match="equal numbers"):
        paired_difference(a, b[:1])


def test_the_t_interval_is_scipys() -> None:
    values = normal(5)
    low, high = stats.t.interval(0.9, 4, loc=values.mean().item(), scale=float(stats.sem(values.numpy())))
    assert t_interval(values, 0.9) == pytest.approx((values.mean().item(), low, high, 5, 0))
    single = t_interval(torch.tensor([2.0]))
    assert (single.mean, single.n) == (2, 1)
    assert math.isnan(single.low)
    assert math.isnan(single.high)


def test_nested_means_count_every_seed_once() -> None:
    seeds = [torch.tensor([1.0, 3.0]), torch.tensor([5.0, math.nan, math.nan]), torch.tensor([math.nan])]
    nested, means = nested_mean(seeds), t_interval(torch.tensor([2.0, 5.0]))
    assert nested == pytest.approx((*means[:3], 3, 3))
    assert math.isnan(nested_mean(seeds[:1]).low)
    assert nested_mean([]).n == 0


def test_crossed_means_by_analysis_of_variance() -> None:
    values = torch.tensor([[1.0, 2.0, 6.0], [2.0, 5.0, 8.0]])
    # Means 3 and 5 of seeds, 1.5, 3.5 and 7 of examples, 4 in all; residuals ±½, ∓½, 0.
    ms_seed, ms_example, ms_residual = 3 * 2.0, 2 * 7.75, 1.0 / 2
    t_1, t_2 = float(stats.t.ppf(0.975, 1)), float(stats.t.ppf(0.975, 2))
    half = math.sqrt((t_1**2 * ms_seed + t_2**2 * (ms_example - ms_residual)) / 6)
    assert crossed_mean(values) == pytest.approx((4, 4 - half, 4 + half, 6, 0))
    holes = torch.cat([values, torch.tensor([[math.nan], [9.0]])], 1)
    assert crossed_mean(holes) == crossed_mean(values)._replace(undefined=2)


def test_seeds_with_equal_means_leave_the_spread_of_texts() -> None:
    values = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])  # no text and no seed stands out
    found = crossed_mean(values)
    assert found.mean == 0.5
    assert found.high - found.low == pytest.approx(2 * 3.18245 * math.sqrt(2 / 3 / 8), abs=1e-4)  # t with 3 degrees


def test_crossed_means_of_too_few() -> None:
    assert math.isnan(crossed_mean(torch.ones(1, 4)).low)
    assert math.isnan(crossed_mean(torch.ones(4, 1)).low)
    assert math.isnan(crossed_mean(torch.full((2, 2), math.nan)).mean)
    assert crossed_mean(torch.ones(3, 4)) == Interval(1, 1, 1, 12, 0)


def test_only_flat_lists_of_values_are_taken() -> None:
    with pytest.raises(ValueError, match="one value per example"):
        bootstrap_mean(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="one value per example"):
        nested_mean([torch.zeros(2, 2)])


def coverage(interval: Callable[[Tensor], Interval], samples: Tensor) -> float:
    """How often intervals from samples [trial, …] of a distribution with mean 0 hold 0."""
    results = [interval(sample) for sample in samples]
    return sum(r.low <= 0 <= r.high for r in results) / len(results)


@pytest.mark.slow
def test_the_bootstrap_holds_the_truth_over_examples_but_not_over_three_seeds() -> None:
    assert coverage(lambda x: bootstrap_mean(x, draws=1000), normal(1500, 200)) == pytest.approx(0.95, abs=0.02)
    assert coverage(lambda x: bootstrap_mean(x, draws=1000), normal(3000, 3)) == pytest.approx(0.73, abs=0.04)
    assert coverage(t_interval, normal(3000, 3)) == pytest.approx(0.95, abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("by_seed", [0.0, 0.1, 1.0])
def test_nested_means_hold_the_truth(seeds: int, by_seed: float) -> None:
    values = by_seed * normal(3000, seeds, 1) + normal(3000, seeds, 60, seed=1)
    assert coverage(lambda x: nested_mean(list(x)), values) == pytest.approx(0.95, abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize(("by_seed", "by_example"), [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.1, 0.3)])
def test_crossed_means_hold_the_truth(seeds: int, by_seed: float, by_example: float) -> None:
    shared = by_seed * normal(3000, seeds, 1) + by_example * normal(3000, 1, 60, seed=1)
    assert 0.94 <= coverage(crossed_mean, shared + 0.3 * normal(3000, seeds, 60, seed=2)) <= 0.99


@pytest.mark.slow
def test_the_spread_of_seeds_misses_what_they_share() -> None:
    values = normal(3000, 1, 60) + 0.3 * normal(3000, 3, 60, seed=1)
    assert coverage(lambda x: nested_mean(list(x)), values) < 0.7


def test_an_interval_is_cut_to_what_is_possible() -> None:
    assert clip_interval(Interval(0.5, -3.0, 4.0, 2, 0), 1.0) == Interval(0.5, -1.0, 1.0, 2, 0)
    assert clip_interval(Interval(0.5, 0.4, 0.6, 2, 0), 1.0) == Interval(0.5, 0.4, 0.6, 2, 0)
    assert math.isnan(clip_interval(Interval(0.5, math.nan, math.nan, 1, 0), 1.0).low)
