"""Sweep: how does a measure move with sparsegen's λ? (Meister et al. 2021, table 2 and figure 3)

Larger λ is sparser, so a negative τ of λ with entropy says that entropy *falls* as attention gets sparser. The paper
prints negative numbers and reads them as a rise; it doesn't say what was correlated. So three readings:

- `grid`: λ with the mean over texts at each λ; as many points as λ;
- `pooled`: λ with every text's value at each λ, all in one list; of entropies only;
- `text`: τ of λ with the values of one text, averaged over texts.

All intervals are over texts, *for these trained models*. They leave out the largest doubt: another training moves all
texts of a λ together, so that intervals miss 0 although λ does nothing. What is claimed needs a p that sees training:

- `grid`: the exact p of τ over the points, whose order any training may exchange; below 5 of them it can't reach 0.05;
- `pooled`, `text`: concordant minus discordant pairs, summed over the seeds that have trained a model at every λ, among
  9,999 permutations of each seed's models; no p, and no claim, with fewer than 5 seeds.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.ties import levels
from exegete.experiments.common.summaries import DRAWS, TAILS, or_none, resampled_means
from exegete.measures.points import relate
from exegete.measures.rank import kendall
from exegete.measures.statistics import bootstrap_mean

READINGS = ("grid", "pooled", "text")
LEAST = 3  # values of λ: a trend
LEVEL = 0.05  # of p, below which something is claimed
POINTS = 5  # values of λ: the least p of τ is 2/n!, which is 0.083 for 4 of them
SEEDS = 5  # trainings of every λ
PERMUTATIONS = 9_999
FEW_POINTS = f"cannot tell: fewer than {POINTS} values of λ"
FEW_SEEDS = f"no verdict: of these trained models only, fewer than {SEEDS} seeds per λ"
MOVING = ("entropy_", "tau_", "corrected_", "inside_", "support_share", "own_share")


def moves(tidy: pl.DataFrame) -> pl.DataFrame:
    """By task, family, measure and reading: τ-b with λ, interval over texts, p over trainings, n, and what it means."""
    kept = tidy.filter(pl.col("lam").is_not_null(), pl.col("measure").str.contains(f"^({'|'.join(MOVING)})"))
    groups = kept.partition_by(["task", "family", "measure"], as_dict=True, maintain_order=True)
    rows = [
        {"task": task, "family": family, "measure": measure} | found
        for (task, family, measure), group in groups.items()
        if group["lam"].n_unique() >= LEAST
        for found in _readings(group)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _readings(group: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Texts that have a value at every λ and seed; a text's value at a λ is the mean over seeds."""
    lams, values = lambda_grid(group)
    of, seeds = torch.tensor(lams, dtype=torch.float64), _by_seed(group, len(lams))
    facts = {"lambdas": len(lams), "seeds": len(seeds), "texts": len(values)}
    if not len(values):
        for reading in READINGS:
            yield facts | _said(reading, None, None, None, None, 0, "")
        return
    yield facts | _grid(of, values)
    if group["measure"][0].startswith("entropy_"):
        yield facts | _pooled(of, values, seeds)
    mean = bootstrap_mean(kendall(of.expand_as(values), values).tau)
    p = over_trainings(seeds, across=False)
    yield facts | _said("text", mean.mean, mean.low, mean.high, p, mean.n, "" if len(seeds) >= SEEDS else FEW_SEEDS)


def _by_seed(group: pl.DataFrame, lams: int) -> list[Tensor]:
    """Values [text, λ] of every seed that has trained a model at every λ."""
    parts = group.partition_by("seed", maintain_order=True)
    return [lambda_grid(part)[1] for part in parts if part["lam"].n_unique() == lams]


def _signs(values: Tensor, across: bool) -> Tensor:
    """Of models k and j, how much more often k's value of a text is above j's (of any text) than below: [λ, λ]."""
    others = [values.roll(shift, 0) for shift in range(len(values) if across else 1)]
    found: Tensor = torch.stack([(values[:, :, None] - other[:, None]).sign().mean(0) for other in others]).mean(0)
    return found


def over_trainings(seeds: list[Tensor], across: bool) -> float | None:
    """Two-sided p, if each seed's models could as well have stood at other λ; None with fewer than 5 seeds.

    seeds: values [text, λ] each. The sum of `_signs` over k > j is concordant minus discordant pairs, within texts or
    across them, and a permutation only renames models.
    """
    if len(seeds) < SEEDS:
        return None
    draw, n = torch.Generator().manual_seed(0), seeds[0].shape[1]
    ahead = torch.ones(n, n, dtype=torch.float64).tril(-1)
    drawn, signs = torch.zeros(PERMUTATIONS, dtype=torch.float64), [_signs(values, across) for values in seeds]
    for each in signs:
        order = torch.rand(PERMUTATIONS, n, generator=draw).argsort(-1)
        drawn += (each[order[:, :, None], order[:, None]] * ahead).sum((1, 2))
    found = sum(float((each * ahead).sum()) for each in signs)
    return (1 + int((drawn.abs() >= abs(found) - 1e-9).sum())) / (1 + PERMUTATIONS)


def lambda_grid(group: pl.DataFrame) -> tuple[list[float], Tensor]:
    """Values of λ, ascending, and the values of every text at each of them: [text, λ]."""
    means = group.group_by("example", "lam", maintain_order=True).agg(
        pl.when(pl.col("value").null_count() == 0).then(pl.col("value").mean()).alias("value")
    )
    lams = sorted(group["lam"].unique().to_list())
    wide = means.pivot("lam", index="example", values="value", maintain_order=True).drop("example").drop_nulls()
    if wide.is_empty():
        return lams, torch.zeros(0, len(lams), dtype=torch.float64)
    return lams, torch.stack([torch.from_numpy(wide[str(lam)].to_numpy().copy()) for lam in lams], 1)


def _grid(of: Tensor, values: Tensor) -> dict[str, Any]:
    means = values.mean(0)
    table = kendall(of[None], means[None])
    level = levels(means)
    tied = len(level.unique()) < len(of)  # then counting permutations is exact, and the normal approximation is not
    p = relate(of, level)[1].p if tied else table.p.item()
    drawn = resampled_means(values, DRAWS)  # [draw, λ]
    taus = kendall(of.expand_as(drawn), drawn).tau
    low, high = _ends(taus)
    return _said("grid", table.tau.item(), low, high, p, len(of), "" if len(of) >= POINTS else FEW_POINTS)


def _pooled(of: Tensor, values: Tensor, seeds: list[Tensor]) -> dict[str, Any]:
    from scipy import stats  # half a second that whoever only judges doesn't pay

    tau = float(stats.kendalltau(of.expand_as(values).flatten().numpy(), values.flatten().numpy()).statistic)
    p = over_trainings(seeds, across=True)
    texts = len(values)
    drawn = torch.randint(texts, (DRAWS, texts), generator=torch.Generator().manual_seed(0))
    times = torch.zeros(DRAWS, texts, dtype=torch.float64).scatter_add_(1, drawn, torch.ones_like(drawn).double())
    low, high = _ends(pooled_taus(values, times))
    return _said("pooled", tau, low, high, p, values.numel(), "" if len(seeds) >= SEEDS else FEW_SEEDS)


def pooled_taus(values: Tensor, times: Tensor) -> Tensor:
    """τ-b of λ with all values of samples of texts, [draw], from how often each text was drawn, [draw, text].

    values are [text, λ], λ ascending. Whether text a at a larger λ is above text b at a smaller one doesn't depend on
    the sample: concordant minus discordant pairs are a quadratic form in how often a and b were drawn. So are ties.
    """
    texts, lams = values.shape
    score, equal = (torch.zeros(texts, texts, dtype=torch.float64) for _ in range(2))
    for k in range(lams):
        for j in range(lams):
            larger, smaller = values[:, k, None], values[None, :, j]
            if j < k:
                score += (larger - smaller).sign()
            equal += larger == smaller
    all_items = texts * lams
    pairs, tied_lams = all_items * (all_items - 1) / 2, lams * texts * (texts - 1) / 2
    tied = (((times @ equal) * times).sum(1) - all_items) / 2  # without every item's tie with itself
    return ((times @ score) * times).sum(1) / ((pairs - tied_lams) * (pairs - tied)).sqrt()


def _ends(taus: Tensor) -> tuple[float | None, float | None]:
    defined = taus[~taus.isnan()]
    if not len(defined):
        return None, None
    low, high = defined.quantile(torch.tensor(TAILS, dtype=torch.float64)).tolist()
    return low, high


def _said(
    reading: str, tau: float | None, low: float | None, high: float | None, p: float | None, n: int, too_few: str
) -> dict[str, Any]:
    """One reading; `too_few` says what there is too little of for a claim."""
    tau, low, high, p = (or_none(value) for value in (tau, low, high, p))
    found = {"reading": reading, "tau": tau, "low": low, "high": high, "p": p, "n": n}
    if tau is None or low is None or high is None:
        return found | {"meaning": "undefined"}
    sure = p is not None and p < LEVEL and (low > 0 or high < 0)
    moves_so = f"{'rises' if tau > 0 else 'falls'} as attention gets sparser" if sure else "cannot tell"
    return found | {"meaning": too_few or moves_so}
