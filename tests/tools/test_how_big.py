"""Estimates of what large studies take are products of what was measured."""

import pytest
from tools.how_big import KINDS, PASSES, estimated


def test_estimates_are_products() -> None:
    (row,) = estimated().filter(model="BiLSTM", texts=10**6, asked=10**6).to_dicts()
    assert row["asking_hours"] == pytest.approx(10**6 * PASSES * KINDS[0].seconds / 3600)
    assert row["training_hours"] == pytest.approx(10**6 * 8 * 3 * KINDS[0].seconds / 3600)
