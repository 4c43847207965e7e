"""Cohen's κ against its formula, a textbook's numbers and scikit-learn."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from exegete.measures.kappa import kappa, kappa_interval

# 50 applications: both say yes to 20 and no to 15, one alone to 5 and the other alone to 10.
YES = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
OTHER = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15

answers = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


def slow(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Straight from the formula; None where it divides by 0."""
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    expected = sum(first.count(c) * second.count(c) for c in {*first, *second}) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def test_a_textbook_example() -> None:
    assert kappa(torch.tensor(YES), torch.tensor(OTHER)).item() == pytest.approx(0.4, abs=1e-12)  # (0.7 − 0.5) / 0.5


@given(answers)
@settings(max_examples=60, deadline=None)
def test_the_formula_and_the_oracle(pairs: list[tuple[int, int]]) -> None:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    ours, slowly = kappa(torch.tensor(first), torch.tensor(second)).item(), slow(first, second)
    if slowly is None:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(slowly, abs=1e-10)
        assert ours == pytest.approx(cohen_kappa_score(first, second), abs=1e-10)


def test_names_of_answers_and_order_of_people_mean_nothing() -> None:
    first, second = torch.tensor(YES), torch.tensor(OTHER)
    assert kappa(second, first).item() == pytest.approx(kappa(first, second).item(), abs=1e-12)
    assert kappa(1 - first, 1 - second).item() == pytest.approx(0.4, abs=1e-12)
    assert kappa(first.bool(), second.bool()).item() == pytest.approx(0.4, abs=1e-12)


def test_the_ends() -> None:
    one, two = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 1, 1, 0])
    assert kappa(one, one).item() == 1
    assert kappa(one, 1 - one).item() == -1
    assert kappa(one, two).item() == 0
    assert kappa(one, torch.ones(4, dtype=torch.int64)).item() == 0  # one person always says yes: chance


def test_undefined_where_nobody_ever_says_anything_else() -> None:
    yes = torch.ones(7, dtype=torch.int64)
    assert kappa(yes, yes).isnan()
    assert not kappa(yes, 0 * yes).isnan()
    found = kappa_interval(yes, yes)
    assert math.isnan(found.mean)
    assert (found.n, found.undefined) == (7, 7)
    assert kappa_interval(yes[:0], yes[:0]).n == 0


def test_many_pairs_at_once() -> None:
    first, second = torch.randint(3, (2, 5, 20), generator=torch.Generator().manual_seed(0))
    together = kappa(first, second)
    assert together.shape == (5,)
    for row in range(5):
        assert together[row].item() == pytest.approx(slow(first[row].tolist(), second[row].tolist()), abs=1e-12)


def test_the_interval_is_that_of_resampled_items() -> None:
    first, second = torch.tensor(YES), torch.tensor(OTHER)
    found = kappa_interval(first, second, draws=400)
    generator = torch.Generator().manual_seed(0)
    drawn = []
    for picked in torch.randint(50, (400, 50), generator=generator).tolist():
        value = slow([YES[i] for i in picked], [OTHER[i] for i in picked])
        assert value is not None
        drawn.append(value)
    bounds = torch.tensor(drawn, dtype=torch.float64).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    assert (found.low, found.high) == pytest.approx(tuple(bounds.tolist()), abs=1e-10)
    assert found.low < found.mean < found.high
    assert kappa_interval(first, second, draws=400) == found
    # About what the large-sample standard error gives: √(p_o (1 − p_o) / n) / (1 − p_e) = 0.13.
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.13, rel=0.15)


def test_samples_where_it_is_undefined_are_left_out() -> None:
    found = kappa_interval(torch.tensor([1, 1, 0]), torch.tensor([1, 1, 0]))  # often the 0 isn't drawn
    assert (found.mean, found.low, found.high) == (1, 1, 1)


@pytest.mark.parametrize(("n", "m"), [(3, 2), (0, 0)])
def test_unequal_or_no_answers(n: int, m: int) -> None:
    with pytest.raises(ValueError, match="the same items"):
        kappa(torch.ones(n), torch.ones(m))
