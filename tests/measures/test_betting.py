"""Betting: the wealth recomputed text by text, and how often a sequence that is looked at all the time misses."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.measures.betting import STEPS, Bets

ALPHA = 0.05
REPEATS, TEXTS = 300, 300
inside = st.floats(-1, 1, allow_nan=False)
series = st.lists(inside, max_size=40)


def slow_wealth(values: list[float], m: float) -> list[float]:
    """What somebody has after every text who doubts that the mean of values in [0, 1] is at most m."""
    found, wealth = [], 1.0
    total, squares, count = 0.5, 0.25, 1  # of the texts before, as if one had been there
    for value in values:
        mean, variance = total / count, squares / count
        stake = 0.0 if mean <= m else min((mean - m) / (variance + (mean - m) ** 2), 0.75 / m)
        wealth *= 1 + stake * (value - m)
        found.append(wealth)
        count, total = count + 1, total + value
        squares += (value - total / count) ** 2
    return found


def slow_rejects(values: list[float], m: float, alpha: float) -> bool:
    """Whether "at most m" was ever rejected, of values in [−1, 1]."""
    return max(slow_wealth([(x + 1) / 2 for x in values], (m + 1) / 2), default=1.0) >= 1 / alpha


def is_near(values: list[float], m: float, alpha: float) -> bool:
    """Whether rounding may decide."""
    most = max(slow_wealth([(x + 1) / 2 for x in values], (m + 1) / 2), default=1.0)
    return abs(math.log(most) + math.log(alpha)) < 1e-6


@settings(deadline=None)
@given(series, st.floats(-0.95, 0.95), st.sampled_from([0.05, 0.0025, 0.3]))
def test_wealth_recomputed_text_by_text(values: list[float], m: float, alpha: float) -> None:
    bets = Bets(torch.tensor(values, dtype=torch.float64))
    if not is_near(values, m, alpha):
        assert bets.rejects_at_most(m, alpha) == slow_rejects(values, m, alpha)
    mirrored = [-x for x in values]
    if not is_near(mirrored, -m, alpha):
        assert bets.rejects_at_least(m, alpha) == slow_rejects(mirrored, -m, alpha)


def test_by_hand() -> None:
    """Of ones: the first stake is (½ − m)/(¼ + (½ − m)²), the next ones of the mean ¾ and so on."""
    m = 0.25
    first = 1 + 0.25 / (0.25 + 0.0625) * 0.75
    mean, variance = 0.75, (0.25 + (1 - 0.75) ** 2) / 2
    second = first * (1 + (mean - m) / (variance + (mean - m) ** 2) * 0.75)
    assert slow_wealth([1.0, 1.0], m) == pytest.approx([first, second])
    bets = Bets(torch.ones(2), 0.0, 1.0)
    assert bets.rejects_at_most(m, 1 / second + 1e-9)
    assert not bets.rejects_at_most(m, 1 / second - 1e-9)
    assert slow_wealth([0.0], 0.5) == [1.0]  # who expects no more than m stakes nothing


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_an_interval_is_all_that_is_not_rejected(values: list[float]) -> None:
    alpha, grid = 0.2, [2 * step / STEPS - 1 for step in range(1, STEPS)]
    found = Bets(torch.tensor(values, dtype=torch.float64)).interval(alpha)
    for low, sign in ((found.low, 1), (-found.high, -1)):
        mine = [sign * x for x in values]
        kept = [m for m in grid[::25] if not is_near(mine, m, alpha)]
        for m in kept:
            assert slow_rejects(mine, m, alpha) == (m <= low + 1e-9), m
    assert found.n == len(values)
    assert found.mean == pytest.approx(sum(values) / len(values))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60), st.floats(-0.9, 0.9))
def test_more_texts_never_take_a_rejection_back(values: list[float], m: float) -> None:
    known, ends = (False, False), (-1.0, 1.0)
    for n in range(1, len(values) + 1):
        bets = Bets(torch.tensor(values[:n], dtype=torch.float64))
        now = bets.rejects_at_most(m, 0.3), bets.rejects_at_least(m, 0.3)
        assert all(new or not old for old, new in zip(known, now, strict=True))
        interval = bets.interval(0.3)
        assert interval.low >= ends[0]
        assert interval.high <= ends[1]
        known, ends = now, (interval.low, interval.high)


def everybody(draw: Tensor, m: float) -> Tensor:
    """Of many series [repeat, text] in [0, 1] the largest wealth ever, by who doubts "at most m"."""
    count = torch.arange(1, draw.shape[1] + 1)
    means = (0.5 + draw.cumsum(1)) / (count + 1)
    variances = (0.25 + (draw - means).square().cumsum(1)) / (count + 1)
    mean = torch.cat([torch.full((len(draw), 1), 0.5), means[:, :-1]], 1)
    variance = torch.cat([torch.full((len(draw), 1), 0.25), variances[:, :-1]], 1)
    stake = ((mean - m) / (variance + (mean - m) ** 2)).clamp(min=0).clamp(max=0.75 / m)
    return (1 + stake * (draw - m)).log().cumsum(1).amax(1)


def drawn(kind: str) -> tuple[Tensor, float]:
    """Series in [0, 1] and their mean."""
    noise = torch.rand(REPEATS, TEXTS, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    made = {
        "skewed": (noise**6, 1 / 7),
        "two points": ((noise < 0.85).double(), 0.85),
        "rare": ((noise < 0.03).double(), 0.03),
        "near 1": (1 - 0.02 * noise, 0.99),
        "as Γ": (1 - 0.6 * noise**2, 0.8),
    }
    return made[kind]


@pytest.mark.parametrize("kind", ["skewed", "two points", "rare", "near 1", "as Γ"])
def test_a_sequence_that_is_looked_at_after_every_text_misses_rarely(kind: str) -> None:
    """Of "the mean is at most what it is" and its mirror, each is rejected, ever, in α of all series at most."""
    draw, mean = drawn(kind)
    three_errors = 3 * math.sqrt(ALPHA * (1 - ALPHA) / REPEATS)
    for values, m in ((draw, mean), (1 - draw, 1 - mean)):
        missed = everybody(values, m) >= -math.log(ALPHA)
        assert missed.double().mean() <= ALPHA + three_errors
        some = range(0, REPEATS, 10)
        ours = [Bets(values[i], 0.0, 1.0).rejects_at_most(m, ALPHA) for i in some]
        assert ours == missed[::10].tolist()


def test_what_is_far_is_rejected_soon() -> None:
    values = 0.8 + 0.1 * torch.sin(torch.arange(60, dtype=torch.float64))
    assert Bets(values).rejects_at_most(0.6, 0.05)
    assert Bets(values).rejects_at_least(0.95, 0.05)
    assert not Bets(values).rejects_at_most(0.79, 0.05)


def test_no_number_is_no_text() -> None:
    values = torch.tensor([0.5, math.nan, 0.7, math.nan, 0.2])
    bets, without = Bets(values), Bets(torch.tensor([0.5, 0.7, 0.2]))
    assert bets.interval(0.1) == without.interval(0.1)._replace(undefined=2)
    assert (bets.mean, bets.undefined) == (without.mean, 2)
    assert bets.at_texts.isnan().tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("value", [-1.0, -0.4, 0.0, 0.7, 1.0])
def test_all_equal_values_close_in_on_what_they_are(value: float) -> None:
    widths = []
    for n in (1, 10, 100, 1000):
        found = Bets(torch.full((n,), value)).interval(0.05)
        assert found.low <= value + 1e-6 <= found.high + 2e-6
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.5
    assert widths[-1] < 0.05


def test_of_no_text_nothing_is_known() -> None:
    for values in (torch.zeros(0), torch.full((5,), math.nan)):
        bets = Bets(values)
        assert math.isnan(bets.mean)
        assert not bets.rejects_at_most(-0.99, 0.05)
        assert not bets.rejects_at_least(0.99, 0.05)
        found = bets.interval(0.05)
        assert found.n == 0
        assert all(math.isnan(x) for x in found[:3])
