"""The simulated scheduler: by hand where that can be done, and never better than what is possible."""

import random

import pytest
from tools.how_big import KINDS, PASSES, estimated
from tools.scheduling import makespan


def test_by_hand() -> None:
    assert makespan([3.0, 2.0, 1.0], 2, 0.0, 0.0) == 3.0
    assert makespan([4.0, 3.0, 3.0, 2.0], 2, 0.0, 0.0) == 6.0  # 4 + 2 and 3 + 3
    assert makespan([1.0, 1.0], 1, 0.5, 0.25) == pytest.approx(0.5 + 0.25 + 1 + 0.25 + 0.5 + 0.25 + 1)  # nothing waits


def test_never_better_than_the_work_and_the_longest_piece_and_at_most_a_piece_worse() -> None:
    draw = random.Random(0)
    for workers in (1, 2, 7, 64):
        pieces = sorted((draw.expovariate(1.0) for _ in range(200)), reverse=True)
        bound = max(sum(pieces) / workers, pieces[0])
        assert bound <= makespan(pieces, workers, 0.0, 0.0) + 1e-9
        assert makespan(pieces, workers, 0.0, 0.0) <= sum(pieces) / workers + pieces[0]  # Graham 1969


def test_one_driver_hands_out_so_many() -> None:
    assert makespan([0.001] * 1000, 1000, driver=0.01, message=0.0) >= 10.0


def test_estimates_are_products() -> None:
    (row,) = estimated().filter(model="BiLSTM", texts=10**6, asked=10**6).to_dicts()
    assert row["asking_hours"] == pytest.approx(10**6 * PASSES * KINDS[0].seconds / 3600)
    assert row["training_hours"] == pytest.approx(10**6 * 8 * 3 * KINDS[0].seconds / 3600)
