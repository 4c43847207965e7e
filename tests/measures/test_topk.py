"""Top-k τ: against the papers' definitions, one pair at a time; the published numbers; chance levels."""

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from exegete.measures.rank import kendall
from exegete.measures.topk import bucket, fagin, legacy, nonzeros

List = Sequence[float]
Coefficient = Callable[..., Tensor]
COEFFICIENTS = [fagin, bucket, legacy]


def best(x: List, k: int) -> list[int]:
    """The places of the k highest scores, highest first, the earlier of equals first."""
    return sorted(range(len(x)), key=lambda i: (-x[i], i))[:k]


def four_cases(x: List, y: List, k: int, p: float) -> float:
    """K^(p) of two lists without ties, by the four cases of Fagin, Kumar & Sivakumar."""
    one, two = best(x, k), best(y, k)

    def cost(i: int, j: int) -> float:
        in_one, in_two = {i, j} & set(one), {i, j} & set(two)
        if len(in_one) == len(in_two) == 2:  # case 1
            return float((one.index(i) < one.index(j)) != (two.index(i) < two.index(j)))
        if {len(in_one), len(in_two)} == {2, 1}:  # case 2
            ranked, (kept,) = (one, in_two) if len(in_one) == 2 else (two, in_one)
            missing = j if kept == i else i
            return float(ranked.index(missing) < ranked.index(kept))
        if (
            len(in_one) == len(in_two) == 1
        ):  # case 3; both sets are different, or the other item would be in neither list
            return 1.0
        return p  # case 4

    return sum(cost(i, j) for i, j in itertools.combinations(sorted({*one, *two}), 2))


def closed_form(x: List, y: List, k: int, p: float) -> float:
    """K^(p) by the closed form of Fagin et al. (2003), ranks from 1 to k."""
    one, two = best(x, k), best(y, k)
    common = set(one) & set(two)
    z = len(common)
    inversions = sum((x[i] - x[j]) * (y[i] - y[j]) < 0 for i, j in itertools.combinations(common, 2))
    only_one = sum(rank for rank, i in enumerate(one, 1) if i not in common)
    only_two = sum(rank for rank, i in enumerate(two, 1) if i not in common)
    return (k - z) * ((2 + p) * k - p * z + 1 - p) + inversions - only_one - only_two


def largest(n: int, k: int, p: float) -> float:
    """The largest K^(p) of all pairs of orders of n items."""
    return max(four_cases(range(n), order, k, p) for order in itertools.permutations(range(n)))


def slow_fagin(x: List, y: List, k: int, p: float) -> float:
    """With ties: an item is inside if it and all that score as high fit in the k places; the others share a bottom."""
    n, k = len(x), min(k, len(x))

    def order(v: List) -> list[float]:
        return [-sum(w >= u for w in v) if sum(w >= u for w in v) <= k else -n - 1 for u in v]

    a, b = order(x), order(y)
    if k < 1 or len(set(a)) < 2 or len(set(b)) < 2:
        return math.nan
    union = [i for i in range(n) if a[i] >= -n or b[i] >= -n]
    distance = 0.0
    for i, j in itertools.combinations(union, 2):
        if (a[i] == a[j]) != (b[i] == b[j]):
            distance += p
        elif (a[i] - a[j]) * (b[i] - b[j]) < 0:
            distance += 1
    return 1 - 2 * distance / four_cases(range(n), range(n, 0, -1), k, p)


def slow_bucket(x: List, y: List, k: int, p: float) -> float:
    if k < 1:
        return math.nan
    tops = [[i for i in range(len(v)) if v[i] in sorted(set(v), reverse=True)[:k]] for v in (x, y)]
    pairs = {frozenset((i, j)) for i, j in itertools.product(*tops) if i != j}
    costs = []
    for i, j in map(tuple, pairs):
        if (x[i] == x[j]) != (y[i] == y[j]):
            costs.append(p)
        else:
            costs.append(float((x[i] - x[j]) * (y[i] - y[j]) < 0))
    return 1 - 2 * sum(costs) / len(costs) if costs else 1.0


def slow_legacy(x: List, y: List, k: int, p: float) -> float:
    k = min(k, len(x))
    if k < 1:
        return math.nan
    one, two = set(best(x, k)), set(best(y, k))
    common = sorted(one & two)
    distance = 0.0
    if len(common) > 1:
        tau = float(stats.kendalltau([x[i] for i in common], [y[i] for i in common]).statistic)
        distance += (1 - tau) / 2 * len(common) ** 2
    distance += sum(x[i] < x[j] for i in common for j in one - two)
    distance += sum(y[i] < y[j] for i in common for j in two - one)
    distance += 2 * p * math.comb(k - len(common), 2)
    return 1 - 2 * distance / len(one | two) ** 2


SLOW = {fagin: slow_fagin, bucket: slow_bucket, legacy: slow_legacy}


def rows(*lists: List) -> Tensor:
    return torch.tensor([list(x) for x in lists], dtype=torch.float64)


def same(a: Tensor | float, b: Tensor | float, tolerance: float = 1e-12) -> None:
    x, y = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    torch.testing.assert_close(x, y, rtol=0, atol=tolerance, equal_nan=True)


def ragged(levels: int | None = None, count: int = 40, longest: int = 24) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.rand(2, count, longest, generator=generator).argsort(-1).double()  # no two are near
    if levels:
        first = (first * levels / longest).floor()
    absent = torch.arange(longest) >= torch.randint(1, longest + 1, (count,), generator=generator)[:, None]
    return first.masked_fill(absent, torch.nan), second.masked_fill(absent, torch.nan)


def unrelated(n: int = 20, count: int = 3000) -> tuple[Tensor, Tensor]:
    first, second = torch.rand(2, count, n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return first, second


orders = st.integers(2, 9).flatmap(lambda n: st.tuples(*2 * [st.permutations(range(n))], st.integers(1, n)))
penalty = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(orders, penalty)
@settings(deadline=None)
def test_fagin_is_the_four_cases_and_the_closed_form(case: tuple[List, List, int], p: float) -> None:
    x, y, k = case
    distance = four_cases(x, y, k, p)
    assert distance == pytest.approx(closed_form(x, y, k, p))
    most = four_cases(range(len(x)), range(len(x), 0, -1), k, p)
    same(fagin(rows(x), rows(y), k, p)[0], 1 - 2 * distance / most)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_fagin_is_normalised_by_the_largest_distance_of_all_orders(n: int, p: float) -> None:
    up = list(range(n))
    other = [*up[1:], 0]
    for k in range(1, n + 1):
        same(fagin(rows(up), rows(up[::-1]), k, p)[0], -1)
        same(fagin(rows(up), rows(other), k, p)[0], 1 - 2 * four_cases(up, other, k, p) / largest(n, k, p))


ties = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scipy's, for a constant common set
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@given(ties, st.integers(-1, 10), penalty)
@settings(deadline=None)
def test_ties_one_pair_at_a_time(coefficient: Coefficient, pairs: list[tuple[int, int]], k: int, p: float) -> None:
    x, y = zip(*pairs, strict=True)
    got = coefficient(rows(x), rows(y), k, p)[0]
    same(got, SLOW[coefficient](x, y, k, p))
    assert got.isnan() or -1 - 1e-12 <= got <= 1


def test_fagin_by_hand() -> None:
    # Lists a > b > rest and b > c > rest: ab 1 (a is missing from the second), ac 1, bc 0; K_max = 4 + 2p = 5.
    same(fagin(rows([9, 8, 1, 0]), rows([1, 9, 8, 0]), 2)[0], 1 - 2 * 2 / 5)
    # b and c tie for the second place: the first list is a > rest; the second is a > b. Only the pair ab: 0.
    same(fagin(rows([9, 8, 8, 0]), rows([9, 8, 1, 0]), 2)[0], 1)
    # a and b tie inside the list: p for the pair.
    same(fagin(rows([9, 9, 1, 0]), rows([9, 8, 1, 0]), 2)[0], 1 - 2 * 0.5 / 5)


def test_fagin_at_k_equal_n_is_kendalls_tau() -> None:
    first, second = ragged()
    same(fagin(first, second, 24), kendall(first, second).tau)
    same(fagin(first, second, 99), kendall(first, second).tau)


def test_the_disjoint_maximum_would_flatter_long_lists() -> None:
    first, second = unrelated()
    of_disjoint, of_reversed = 20**2 + 0.5 * 20 * 19, 20 * 19 / 2
    distance = (1 - fagin(first, second, 20)) / 2 * of_reversed
    assert (1 - 2 * distance / of_disjoint).mean().item() == pytest.approx(0.68, abs=0.005)
    assert 1 - 2 * of_reversed / of_disjoint == pytest.approx(0.36, abs=0.005)


@pytest.mark.parametrize(("k", "value"), [(1, 1.0), (2, 0.875), (3, 0.83), (5, 0.80), (10, 0.775)])
def test_disjoint_lists(k: int, value: float) -> None:
    first, second = rows(range(20)), rows(range(20, 0, -1))
    assert legacy(first, second, k).item() == pytest.approx(value, abs=0.005)
    same(fagin(first, second, k)[0], -1)
    same(bucket(first, second, k)[0], -1)


@pytest.mark.parametrize(
    ("coefficient", "k", "mean", "error"),
    [
        (legacy, 1, 1.0, 1e-9),
        (legacy, 2, 0.85, 0.02),
        (legacy, 3, 0.8, 0.02),
        (legacy, 5, 0.75, 0.05),
        (legacy, 10, 0.57, 0.01),
        (legacy, 20, 0.0, 0.01),
        (bucket, 1, -0.9, 0.02),
        (bucket, 2, -0.9, 0.04),
        (bucket, 10, -0.29, 0.02),
        (bucket, 20, 0.0, 0.01),
        (fagin, 20, 0.0, 0.01),
    ],
)
def test_what_unrelated_lists_score(coefficient: Coefficient, k: int, mean: float, error: float) -> None:
    assert coefficient(*unrelated(), k).mean().item() == pytest.approx(mean, abs=error)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_equal_lists_give_one(coefficient: Coefficient) -> None:
    first, _ = unrelated(count=5)
    for k in (1, 2, 7, 20, 30):
        same(coefficient(first, first * 3 - 1, k), torch.ones(5))


def test_undefined_is_nan() -> None:
    constant, single, up = rows([1, 1, 1]), rows([1]), rows([1, 2, 3])
    for k in (1, 2, 3):
        assert fagin(constant, up, k).isnan()
        assert fagin(up, constant, k).isnan()
    assert fagin(rows([2, 2, 1]), up, 1).isnan()  # two items for one place
    assert not fagin(rows([2, 2, 1]), up, 2).isnan()
    assert fagin(single, single, 1).isnan()
    assert legacy(constant, up, 3).isnan()
    same(bucket(single, single, 1)[0], 1)
    same(bucket(constant, up, 3)[0], 0)  # every pair is tied in exactly one list
    empty = rows([torch.nan, torch.nan])
    for coefficient in COEFFICIENTS:
        assert coefficient(up, up, 0).isnan()
        assert coefficient(up, up, -2).isnan()
        assert coefficient(empty, empty, 1).isnan()
        assert coefficient(torch.empty(0, 3), torch.empty(0, 3), 2).shape == (0,)


def test_k_is_one_number_or_one_per_row() -> None:
    first, second = ragged()
    k = torch.arange(len(first)) % 7
    for coefficient in COEFFICIENTS:
        together = coefficient(first, second, k)
        same(together, torch.cat([coefficient(first[i : i + 1], second[i : i + 1], int(k[i])) for i in range(len(k))]))
        assert together[k == 0].isnan().all()
        with pytest.raises(ValueError, match="whole number"):
            coefficient(first, second, k[:3])
        with pytest.raises(ValueError, match="whole number"):
            coefficient(first, second, k.double())


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("levels", [None, 4])
def test_batching_and_padding_change_nothing(coefficient: Coefficient, levels: int | None) -> None:
    first, second = ragged(levels)
    whole = coefficient(first, second, 5)
    same(whole, torch.cat([coefficient(a[None], b[None], 5) for a, b in zip(first, second, strict=True)]))
    holes = torch.full((len(first), 2 * first.shape[1] + 3), torch.nan, dtype=torch.float64)
    spread_first, spread_second = holes.clone(), holes.clone()
    spread_first[:, 2:-1:2], spread_second[:, 2:-1:2] = first, second
    same(whole, coefficient(spread_first, spread_second, 5))


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_the_order_of_items_does_not_matter(coefficient: Coefficient) -> None:
    first, second = ragged(None if coefficient is legacy else 4)  # legacy resolves ties by position
    order = torch.randperm(first.shape[1], generator=torch.Generator().manual_seed(1))
    same(coefficient(first, second, 5), coefficient(first[:, order], second[:, order], 5))
    same(coefficient(first, second, 5), coefficient(second, first, 5))


def test_legacy_takes_the_earlier_of_equal_items() -> None:
    tied, up = rows([1, 1, 1, 0]), rows([1, 2, 3, 4])
    same(legacy(tied, up, 1)[0], slow_legacy([3, 2, 1, 0], [1, 2, 3, 4], 1, 0.5))
    same(legacy(tied, rows([4, 3, 2, 1]), 1)[0], 1)


def test_nonzeros_is_the_smaller_support() -> None:
    attention, gradient = rows([0.5, 0.5, 0, 0], [1, 0, 0, torch.nan]), rows([1, -1, 2, 0], [0, 0, 0, torch.nan])
    assert nonzeros(attention, gradient).tolist() == [2, 0]
    assert nonzeros(attention).tolist() == [2, 1]
    assert fagin(attention, gradient, nonzeros(attention, gradient)).isnan().tolist() == [False, True]
