"""Ratios of means: the mean is the ratio, the spread is that of a bootstrap of the ratio, and F1 is F1."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.measures.ratios import f1_values, linearise
from exegete.measures.statistics import bootstrap_mean
from exegete.training.metrics import f1


def test_the_mean_is_the_ratio_of_means() -> None:
    a, b = torch.tensor([1.0, 0.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 2.0, 2.0])
    values = linearise(a, b)
    assert values.mean().item() == pytest.approx(7 / 8)
    assert values.tolist() == pytest.approx([7 / 8 + (x - 7 / 8 * y) / 2 for x, y in zip(a.tolist(), b.tolist())])  # noqa: B905


def test_what_is_undefined_stays_so_and_changes_nothing() -> None:
    a, b = torch.tensor([1.0, math.nan, 2.0]), torch.tensor([2.0, 9.0, 2.0])
    values = linearise(a, b)
    assert values.isnan().tolist() == [False, True, False]
    assert values.nanmean().item() == pytest.approx(3 / 4)
    assert linearise(torch.zeros(3), torch.zeros(3)).isnan().all()


def test_the_interval_is_that_of_resampled_ratios() -> None:
    generator = torch.Generator().manual_seed(0)
    b = torch.rand(400, generator=generator).double() + 0.2
    a = 0.6 * b + 0.2 * torch.rand(400, generator=generator).double()
    found = bootstrap_mean(linearise(a, b))
    picked = torch.randint(400, (4000, 400), generator=generator)
    low, high = (a[picked].mean(1) / b[picked].mean(1)).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_f1_is_that_of_the_metrics(pairs: list[tuple[bool, bool]]) -> None:
    predicted, gold = (torch.tensor(column) for column in zip(*pairs, strict=True))
    logits = torch.stack([~predicted, predicted], 1).double()
    assert f1_values(predicted, gold).mean().item() == pytest.approx(f1(logits, gold.long(), of=1))


def test_every_seed_has_its_own_ratio() -> None:
    predicted = torch.tensor([[True, True, False, False], [True, False, False, False]])
    gold = torch.tensor([[True, False, True, False]] * 2)
    assert f1_values(predicted, gold).mean(-1).tolist() == pytest.approx([1 / 2, 2 / 3])
