"""Chance levels of top-k τ: the mean over permutations, keyed by the rows' ids."""

import itertools
import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from exegete.measures.topk import above_chance, bucket, chance, fagin, legacy


def rows(*lists: Sequence[float]) -> Tensor:
    return torch.tensor([list(x) for x in lists], dtype=torch.float64)


def same(a: Tensor | float, b: Tensor | float, tolerance: float = 1e-12) -> None:
    x, y = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    torch.testing.assert_close(x, y, rtol=0, atol=tolerance, equal_nan=True)


def tied(count: int = 12, longest: int = 24) -> tuple[Tensor, Tensor]:
    """Lists of different lengths, the first with four levels of score, NaN after them."""
    generator = torch.Generator().manual_seed(0)
    first, second = torch.rand(2, count, longest, dtype=torch.float64, generator=generator)
    absent = torch.arange(longest) >= torch.randint(1, longest + 1, (count,), generator=generator)[:, None]
    return (first * 4).floor().masked_fill(absent, torch.nan), second.masked_fill(absent, torch.nan)


def test_chance_is_the_mean_over_all_permutations() -> None:
    x, y, k = [3, 1, 1, 0, 5], [2, 2, 0, 1, 4], 2
    exact = fagin(rows(x).expand(120, -1), rows(*itertools.permutations(y)), k)
    drawn = chance(fagin, rows(*[x] * 200), rows(*[y] * 200), k, torch.arange(200), draws=10)
    same(drawn.mean(), exact.mean(), 4 * exact.std().item() / math.sqrt(2000))


def test_chance_leaves_undefined_draws_out() -> None:
    x, y = rows([1, 1, 1, 2, 3], [1, 1, 1, 1, 1]), rows([1, 2, 3, 3, 3], [1, 2, 3, 4, 5])
    exact = legacy(x[:1].expand(120, -1), rows(*itertools.permutations([1, 2, 3, 3, 3])), 3)
    assert exact.isnan().any()
    drawn = chance(legacy, x[:1].repeat(20, 1), y[:1].repeat(20, 1), 3, torch.arange(20), draws=100)
    same(drawn.mean(), exact.nanmean(), 0.05)
    assert chance(fagin, x, y, 3, torch.arange(2), draws=10).isnan().tolist() == [False, True]


def test_chance_depends_on_ids_alone() -> None:
    first, second = tied()
    ids = torch.arange(100, 112)
    whole = chance(bucket, first, second, 3, ids, draws=20)
    part, k = torch.tensor([8, 2, 5]), torch.tensor([3, 3, 3])
    padded = [torch.nn.functional.pad(x[part], (2, 3), value=torch.nan) for x in (first, second)]
    same(chance(bucket, padded[0], padded[1], k, ids[part], draws=20), whole[part])
    assert not torch.allclose(chance(bucket, first, second, 3, ids + 1, draws=20), whole, equal_nan=True)
    assert not torch.allclose(chance(bucket, first, second, 3, ids, draws=20, seed=1), whole, equal_nan=True)


def test_long_rows_get_fewer_shuffles_and_the_same_mean() -> None:
    first, second = torch.rand(2, 300, 80, generator=torch.Generator().manual_seed(0))
    calls: list[int] = []

    def counted(a: torch.Tensor, b: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        calls.append(len(a))
        return fagin(a, b, k)

    few = chance(counted, first, second, 10, torch.arange(300), draws=8)
    assert [n for n in calls if n] == [300, 300]  # 8 · 20 / 80 shuffles of every row
    many = chance(fagin, first[:, :20], second[:, :20], 20, torch.arange(300), draws=8)
    assert abs(float(many.mean())) < 0.02
    assert abs(float(few.mean() - chance(fagin, first, second, 10, torch.arange(300), draws=40).mean())) < 0.02


def test_above_chance_is_zero_for_unrelated_lists() -> None:
    first, second = torch.rand(2, 400, 20, generator=torch.Generator().manual_seed(0))
    for coefficient in (partial(legacy, p=0.0), fagin, bucket):
        level = chance(coefficient, first, second, 5, torch.arange(400), draws=20)
        corrected = above_chance(coefficient(first, second, 5), level)
        assert abs(corrected.mean().item()) < 4 * corrected.std().item() / math.sqrt(400)
    same(above_chance(torch.tensor([1.0, 0.6]), torch.tensor([0.5, 0.6])), torch.tensor([1.0, 0.0]))
