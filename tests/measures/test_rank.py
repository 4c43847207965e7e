"""Rank correlation: against loops over pairs, against scipy, and against every permutation of short lists."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from exegete.measures import rows
from exegete.measures.rank import Kendall, kendall, spearman
from tests.twins import items, twin_of

List = Sequence[float]


def sign(x: float, y: float) -> int:
    return (x > y) - (x < y)


def counts(x: List, y: List) -> tuple[int, int, int, int]:
    """Concordant, discordant, and the pairs that x and y don't tie, one pair at a time."""
    signs = [(sign(x[i], x[j]), sign(y[i], y[j])) for i, j in itertools.combinations(range(len(x)), 2)]
    concordant = sum(a * b == 1 for a, b in signs)
    discordant = sum(a * b == -1 for a, b in signs)
    return concordant, discordant, sum(a != 0 for a, _ in signs), sum(b != 0 for _, b in signs)


DEALT = items(st.integers(0, 3), st.integers(0, 3))


@twin_of(lambda x, y: kendall(x, y).tau, DEALT)
def slow_tau(x: List, y: List) -> float:
    concordant, discordant, in_x, in_y = counts(x, y)
    return (concordant - discordant) / math.sqrt(in_x * in_y) if in_x * in_y else math.nan


@twin_of(lambda x, y: kendall(x, y).gamma, DEALT)
def slow_gamma(x: List, y: List) -> float:
    concordant, discordant, in_x, in_y = counts(x, y)
    return (concordant - discordant) / (concordant + discordant) if in_x * in_y else math.nan


def slow_p(x: List, y: List) -> float:
    """The share of all permutations whose number of discordant pairs is as far from half of the pairs."""
    half = math.comb(len(x), 2) / 2
    seen = abs(counts(x, y)[1] - half)
    far = [abs(counts(x, order)[1] - half) >= seen for order in itertools.permutations(y)]
    return sum(far) / len(far)


@twin_of(spearman, DEALT)
def slow_spearman(x: List, y: List) -> float:
    def ranks(v: List) -> list[float]:
        return [sum(w < u for w in v) + (sum(w == u for w in v) + 1) / 2 for u in v]

    a, b, mean = ranks(x), ranks(y), (len(x) + 1) / 2
    top = sum((i - mean) * (j - mean) for i, j in zip(a, b, strict=True))
    below = math.sqrt(sum((i - mean) ** 2 for i in a) * sum((j - mean) ** 2 for j in b))
    return top / below if below else math.nan


def one(x: List, y: List) -> tuple[Tensor, Tensor]:
    return torch.tensor([list(x)], dtype=torch.float64), torch.tensor([list(y)], dtype=torch.float64)


def ragged(seed: int = 0, levels: int | None = None, count: int = 30, longest: int = 45) -> tuple[Tensor, Tensor]:
    """Two [row, item] tensors of lists of 1 to `longest` items, NaN after them; with ties if there are `levels`."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.rand(2, count, longest, generator=generator).argsort(-1).double()  # no two are near
    if levels:
        first = (first * levels / longest).floor()
    length = torch.randint(1, longest + 1, (count,), generator=generator)
    absent = torch.arange(longest) >= length[:, None]
    return first.masked_fill(absent, torch.nan), second.masked_fill(absent, torch.nan)


def same(a: Tensor | float, b: Tensor | float, tolerance: float = 1e-12) -> None:
    x, y = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    torch.testing.assert_close(x, y, rtol=0, atol=tolerance, equal_nan=True)


few = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_maximum_is_the_best_of_all_pairings(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    same(kendall(*one(x, y)).maximum[0], max(slow_tau(x, order) for order in itertools.permutations(y)))


@given(few)
@settings(deadline=None)
def test_tau_is_never_beyond_its_maximum(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    result = kendall(*one(x, y))
    if not result.tau.isnan():
        assert abs(result.tau.item()) <= 1
        assert result.corrected.item() <= 1 + 1e-12
        same(kendall(*one(sorted(x), sorted(y))).corrected[0], 1)


@pytest.mark.parametrize(("n", "support", "ceiling"), [(20, 1, 0.32), (170, 5, 0.24)])
def test_sparse_lists_have_a_low_ceiling(n: int, support: int, ceiling: float) -> None:
    sparse = torch.zeros(1, n)
    sparse[0, :support] = torch.arange(support, 0, -1)
    dense = torch.arange(n, 0, -1)[None].float()
    result = kendall(sparse, dense)
    same(result.maximum[0], math.sqrt(1 - math.comb(n - support, 2) / math.comb(n, 2)))
    assert round(result.maximum.item(), 2) == ceiling
    same(result.tau, result.maximum)
    same(result.corrected[0], 1)
    same(result.gamma[0], 1)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_exact_p_is_a_share_of_all_permutations(n: int) -> None:
    for order in itertools.islice(itertools.permutations(range(n)), 0, None, 5):
        same(kendall(*one(range(n), order)).p[0], slow_p(range(n), order))


def check_against_scipy(first: Tensor, second: Tensor) -> None:
    result = kendall(first, second)
    for row in range(len(first)):
        x, y = (v[row][~v[row].isnan()].numpy() for v in (first, second))
        if len(x) > 1:
            oracle = stats.kendalltau(x, y)
            same(result.tau[row], float(oracle.statistic))
            same(result.p[row], float(oracle.pvalue))


@pytest.mark.parametrize("levels", [None, 2, 5, 20])
@pytest.mark.parametrize("n", [*range(2, 8), 20, 32, 33, 34, 35, 60])
def test_tau_and_p_are_scipys(n: int, levels: int | None) -> None:
    generator = torch.Generator().manual_seed(n)
    first, second = torch.rand(2, 5, n, generator=generator).argsort(-1).double() / n
    if levels:
        first, second = (first * levels).floor(), torch.cat([second[:3], (second[3:] * levels).floor()])
    check_against_scipy(first, second)


@pytest.mark.parametrize("n", [33, 34, 60, 180])
@pytest.mark.parametrize("swaps", [0, 1, 2])
@pytest.mark.parametrize("direction", [1, -1])
def test_p_is_scipys_for_nearly_equal_and_nearly_reversed_lists(n: int, swaps: int, direction: int) -> None:
    order = list(range(n))
    for place in range(0, 2 * swaps, 2):
        order[place : place + 2] = order[place + 1], order[place]
    first, second = one(range(n), [direction * v for v in order])
    p, oracle = kendall(first, second).p.item(), float(stats.kendalltau(first[0], second[0]).pvalue)
    assert p == pytest.approx(oracle, rel=1e-9, abs=1e-300)  # relative: these are as small as 1e-250


def test_rho_is_scipys() -> None:
    for levels in (None, 4):
        first, second = ragged(levels=levels)
        for row, got in enumerate(spearman(first, second)):
            x, y = (v[row][~v[row].isnan()].numpy() for v in (first, second))
            if len(x) > 1 and len(set(x.tolist())) > 1:
                same(got, float(stats.spearmanr(x, y).statistic))


@pytest.mark.parametrize("row", [[], [3.0], [2.0, 2.0], [1.0, 1.0, 1.0]])
def test_undefined_is_nan_everywhere(row: list[float]) -> None:
    constant, other = one(row, list(range(len(row))))
    for first, second in [(constant, other), (other, constant), (constant, constant)]:
        if len(row) > 1 or first is constant:
            assert all(value.isnan().all() for value in kendall(first, second))
            assert spearman(first, second).isnan().all()


def test_no_rows_give_no_results() -> None:
    assert all(value.shape == (0,) for value in kendall(torch.empty(0, 5), torch.empty(0, 5)))
    assert spearman(torch.empty(0, 0), torch.empty(0, 0)).shape == (0,)


def both(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack([*kendall(first, second), spearman(first, second)])


@pytest.mark.parametrize("levels", [None, 3])
def test_batching_and_padding_change_nothing(levels: int | None) -> None:
    first, second = ragged(levels=levels)
    whole = both(first, second)
    alone = [both(first[i : i + 1], second[i : i + 1]) for i in range(len(first))]
    same(whole, torch.cat(alone, 1))
    holes = torch.full((len(first), 2 * first.shape[1] + 3), torch.nan, dtype=torch.float64)
    spread_first, spread_second = holes.clone(), holes.clone()
    spread_first[:, 2:-1:2], spread_second[:, 2:-1:2] = first, second
    same(whole, both(spread_first, spread_second))


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ragged(levels=4)
    whole = both(first, second)
    monkeypatch.setattr(rows, "PAIRS", 500)
    same(whole, both(first, second))


def test_the_order_of_items_does_not_matter() -> None:
    first, second = ragged(levels=4)
    order = torch.randperm(first.shape[1], generator=torch.Generator().manual_seed(1))
    same(both(first, second), both(first[:, order], second[:, order]))


def test_symmetry_and_reversal() -> None:
    first, second = ragged(levels=4)
    forward, swapped, reversed_ = kendall(first, second), kendall(second, first), kendall(-first, second)
    same(torch.stack([*forward]), torch.stack([*swapped]))
    same(reversed_.tau, -forward.tau)
    same(reversed_.p, forward.p)
    same(reversed_.maximum, forward.maximum)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_any_float_dtype_gives_float64(dtype: torch.dtype) -> None:
    first, second = (x.to(dtype) for x in ragged())
    result: Kendall = kendall(first.requires_grad_(), second)
    assert result.tau.dtype == torch.float64
    assert not result.tau.requires_grad
    same(torch.stack([*result]), torch.stack([*kendall(first.double(), second.double())]))


def test_infinite_scores_are_ranked() -> None:
    same(kendall(*one([math.inf, 1, -math.inf, 0], [4, 3, 1, 2])).tau[0], 1)


def test_long_texts() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.rand(2, 6, 400, generator=generator).argsort(-1).double()
    check_against_scipy(first, second)


def test_lists_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="same places"):
        kendall(torch.tensor([[1.0, torch.nan]]), torch.tensor([[torch.nan, 1.0]]))
    with pytest.raises(ValueError, match="one shape"):
        spearman(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="one shape"):
        kendall(torch.zeros(3), torch.zeros(3))
