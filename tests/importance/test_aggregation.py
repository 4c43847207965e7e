"""Aggregation: against a slow loop over groups, by hand, and what keeps completeness."""

import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.importance.aggregation import AggregationRule, aggregate, ranking
from exegete.importance.integrated_gradients import IntegratedGradients
from tests.small import SPECS, batch_of, small_model, texts

NAN = math.nan


def slow(values: list[float], owner: list[int], group: int, how: str) -> float:
    members = [v for v, o in zip(values, owner, strict=True) if o == group and not math.isnan(v)]
    if not members:
        return NAN
    if how == "max":
        return max(members, key=lambda v: (abs(v), v))
    if how == "l2":
        return math.sqrt(sum(v * v for v in members))
    return sum(members) / (len(members) if how == "mean" else 1)


TOKEN = st.tuples(st.one_of(st.just(NAN), st.integers(-4, 4).map(float)), st.integers(-1, 3))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(TOKEN, min_size=5, max_size=5), min_size=1, max_size=3),
    st.sampled_from(get_args(AggregationRule)),
)
def test_aggregate_against_a_slow_loop(rows: list[list[tuple[float, int]]], how: AggregationRule) -> None:
    values = torch.tensor([[v for v, _ in row] for row in rows], dtype=torch.float64)
    owner = torch.tensor([[o for _, o in row] for row in rows])
    got = aggregate(values, owner, how)
    expected = [
        [slow(v, o, group, how) for group in range(int(owner.max()) + 1)]
        for v, o in zip(values.tolist(), owner.tolist(), strict=True)
    ]
    assert got.shape == (len(rows), int(owner.max()) + 1)
    assert torch.allclose(got, torch.tensor(expected, dtype=torch.float64).reshape(got.shape), equal_nan=True)


@pytest.mark.parametrize(
    ("how", "expected"), [("sum", [-2.0, 2.0]), ("mean", [-1.0, 2.0]), ("max", [-3.0, 2.0]), ("l2", [10**0.5, 2.0])]
)
def test_aggregate_by_hand(how: AggregationRule, expected: list[float]) -> None:
    values, owner = torch.tensor([[NAN, 1.0, -3.0, 2.0, 7.0]]), torch.tensor([[0, 0, 0, 2, -1]])
    got = aggregate(values, owner, how)[0]
    assert got[[0, 2]].tolist() == pytest.approx(expected)
    assert got[1].isnan()  # no token belongs to group 1


def test_no_groups_give_no_columns() -> None:
    assert aggregate(torch.full((2, 3), NAN), torch.full((2, 3), -1), "sum").shape == (2, 0)
    assert aggregate(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.int64), "max").shape == (2, 0)


def test_the_sum_over_sentences_keeps_completeness() -> None:
    examples = texts(6)
    model = small_model(SPECS[0], examples)
    batch = batch_of(model, examples)
    values = IntegratedGradients()(model, batch).values
    owner = torch.where(batch.words, torch.arange(batch.tokens.shape[1]) // 3, -1)
    assert torch.allclose(aggregate(values, owner, "sum").nansum(-1), values.nansum(-1))
    assert not torch.allclose(aggregate(values, owner, "mean").nansum(-1), values.nansum(-1), atol=1e-3)


def test_words_are_ranked_by_sign_or_by_size() -> None:
    values = torch.tensor([[1.0, -3.0, NAN]])
    assert torch.equal(ranking(values, "signed")[:, :2], torch.tensor([[1.0, -3.0]]))
    assert torch.equal(ranking(values, "magnitude")[:, :2], torch.tensor([[1.0, 3.0]]))
    assert ranking(values, "magnitude")[0, 2].isnan()
