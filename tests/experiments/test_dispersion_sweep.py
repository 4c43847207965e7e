"""The sweep of λ: what chance of training may not claim, and p and τ against plain loops."""

import itertools
import random

import polars as pl
import pytest
import torch
from scipy import stats

from exegete.experiments.dispersion.sweep import moves, over_trainings, pooled_taus


def unmoved(seeds: int, measures: int = 40, texts: int = 8) -> pl.DataFrame:
    """λ does nothing; every training moves all texts of its model by chance, and much more than texts differ."""
    draw = random.Random(seeds)
    rows = []
    for measure, lam, seed in itertools.product(range(measures), (-9.0, -3.0, -1.0, 0.0, 0.5, 0.9), range(seeds)):
        trained = draw.gauss(0.5, 0.05)
        said = {"task": "x", "family": "bilstm", "measure": f"tau_{measure}", "lam": lam, "seed": seed}
        rows += [said | {"example": i, "value": trained + draw.gauss(0, 0.01)} for i in range(texts)]
    return pl.DataFrame(rows)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 5])
def test_chance_of_training_is_not_taken_for_a_move(seeds: int) -> None:
    """Intervals over texts alone would claim one in most measures; p over trainings in about one of twenty."""
    found = moves(unmoved(seeds))
    for reading in ("grid", "text"):
        rows = found.filter(reading=reading)
        apart = rows.filter((pl.col("low") > 0) | (pl.col("high") < 0)).height / rows.height
        assert apart > 0.5
        claimed = rows["meaning"].str.contains("rises|falls").mean()
        assert isinstance(claimed, float)
        assert claimed <= 0.1
    assert found.filter(reading="text")["p"].null_count() == (40 if seeds == 1 else 0)


@pytest.mark.parametrize("across", [False, True])
def test_p_over_trainings_against_all_permutations(across: bool) -> None:
    draw = torch.Generator().manual_seed(2)
    seeds = [torch.rand(3, 3, generator=draw).double() + 0.2 * torch.arange(3) for _ in range(5)]

    def pairs(values: list[list[float]], order: tuple[int, ...]) -> int:
        lists = [(a, b) for a in values for b in values] if across else [(a, a) for a in values]
        above = [a[order[k]] - b[order[j]] for a, b in lists for k in range(3) for j in range(k)]
        return sum((x > 0) - (x < 0) for x in above)

    every = [[pairs(v.tolist(), order) for order in itertools.permutations(range(3))] for v in seeds]
    observed = abs(sum(each[0] for each in every))
    sums = [abs(sum(chosen)) for chosen in itertools.product(*every)]
    exact = sum(s >= observed for s in sums) / len(sums)
    assert over_trainings(seeds, across) == pytest.approx(exact, abs=0.02)
    assert over_trainings(seeds[:4], across) is None


def test_pooled_taus_of_samples_against_scipy() -> None:
    draw = torch.Generator().manual_seed(1)
    values = torch.randint(5, (6, 4), generator=draw).double()  # with ties
    times = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 2, 0, 3, 1, 0]]).double()
    for found, counts in zip(pooled_taus(values, times).tolist(), times.long().tolist(), strict=True):
        sample = [row for row, count in zip(values.tolist(), counts, strict=True) for _ in range(count)]
        lams = [lam for _ in sample for lam in range(4)]
        assert found == pytest.approx(stats.kendalltau(lams, [v for row in sample for v in row]).statistic)
