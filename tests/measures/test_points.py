"""Points: coefficients against scipy, p against all orders, intervals by the formula, and too few points."""

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from exegete.measures.points import CONSTANT, TOO_FEW, relate

SIX = ([3.0, 1.0, 4.0, 1.5, 5.0, 9.0], [2.0, 7.0, 1.0, 8.0, 2.5, 0.5])
ORACLES: dict[str, Callable[..., Any]] = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=4, max_size=6))
def test_coefficients_are_scipys_ties_included(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    found = relate(torch.tensor(x).double(), torch.tensor(y).double())
    for one in found:
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert (one.value, one.note) == (None, CONSTANT)
        else:
            assert one.value == pytest.approx(ORACLES[one.statistic](x, y).statistic, abs=1e-9)


def test_p_is_the_share_of_orders_as_extreme() -> None:
    x, y = SIX[0][:5], SIX[1][:5]
    for one in relate(torch.tensor(x), torch.tensor(y)):
        oracle = ORACLES[one.statistic]
        every = [abs(oracle(x, order).statistic) for order in permutations(y)]
        assert one.p == pytest.approx(sum(v >= abs(one.value or 0) - 1e-9 for v in every) / len(every))


def test_p_of_many_points_is_drawn_and_never_zero() -> None:
    x = torch.arange(12).double()
    rising, unrelated = relate(x, x**2), relate(x, torch.tensor([5, 2, 9, 1, 7, 11, 3, 8, 0, 10, 4, 6]).double())
    assert all(one.p == pytest.approx(1 / 10_000) for one in rising)
    for one in unrelated:
        exact = ORACLES[one.statistic](x, torch.tensor([5, 2, 9, 1, 7, 11, 3, 8, 0, 10, 4, 6])).pvalue
        assert one.p == pytest.approx(exact, abs=0.03)


def test_intervals_by_the_formula() -> None:
    x, y = (torch.tensor(v) for v in SIX)
    spearman, kendall = relate(x, y)
    for one, error in (
        (spearman, math.sqrt((1 + (spearman.value or 0) ** 2 / 2) / 3)),
        (kendall, math.sqrt(0.437 / 2)),
    ):
        z = math.atanh(one.value or 0)
        assert one.low == pytest.approx(math.tanh(z - 1.959964 * error), abs=1e-6)
        assert one.high == pytest.approx(math.tanh(z + 1.959964 * error), abs=1e-6)
    four = relate(x[:4], y[:4])
    assert four[0].low is not None
    assert (four[1].low, four[1].high) == (None, None)  # τ of four points has no such interval
    perfect = relate(x, x)
    assert all((one.low, one.high) == (None, None) for one in perfect)


def test_what_is_undefined_is_counted_and_few_points_say_nothing() -> None:
    x = torch.tensor([1.0, 2.0, math.nan, 4.0, 5.0])
    found = relate(x, torch.tensor([1.0, math.nan, 3.0, 4.0, 5.0]))
    assert all((one.n, one.undefined, one.note, one.value) == (3, 2, TOO_FEW, None) for one in found)
