"""Sweep: how does a measure move with sparsegen's λ? (Meister et al. 2021, table 2 and figure 3)

Larger λ is sparser, so a negative τ of λ with entropy says that entropy *falls* as attention gets sparser. The paper
prints negative numbers and reads them as a rise; it doesn't say what was correlated. So three readings:

- `grid`: λ with the mean over texts at each λ; as many points as λ, and an interval over texts;
- `pooled`: λ with every text's value at each λ, all in one list (its p takes texts for independent, which they aren't);
  of entropies only;
- `text`: τ of λ with the values of one text, averaged over texts.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from scipy import stats
from torch import Tensor

from exegete.experiments.summaries import DRAWS, TAILS, number, resampled_means
from exegete.measures.rank import kendall
from exegete.measures.statistics import bootstrap_mean

READINGS = ("grid", "pooled", "text")
LEAST = 3  # values of λ: a trend
MOVING = ("entropy_", "tau_", "corrected_", "inside_", "support_share", "own_share")


def moves(tidy: pl.DataFrame) -> pl.DataFrame:
    """By task, family, measure and reading: τ-b with λ, interval, p, n, and what its sign means."""
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
    lams, values = grid(group)
    of = torch.tensor(lams, dtype=torch.float64)
    facts = {"lambdas": len(lams), "texts": len(values)}
    if not len(values):
        for reading in READINGS:
            yield facts | _said(reading, None, None, None, None, 0)
        return
    yield facts | _grid(of, values)
    if group["measure"][0].startswith("entropy_"):
        yield facts | _pooled(of, values)
    within = kendall(of.expand_as(values), values).tau
    mean = bootstrap_mean(within)
    yield facts | _said("text", mean.mean, mean.low, mean.high, None, mean.n)


def grid(group: pl.DataFrame) -> tuple[list[float], Tensor]:
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
    means = values.mean(0, keepdim=True)
    table = kendall(of[None], means)
    drawn = resampled_means(values, DRAWS)  # [draw, λ]
    taus = kendall(of.expand_as(drawn), drawn).tau
    low, high = _ends(taus)
    return _said("grid", table.tau.item(), low, high, table.p.item(), len(of))


def _pooled(of: Tensor, values: Tensor) -> dict[str, Any]:
    found = stats.kendalltau(of.expand_as(values).flatten().numpy(), values.flatten().numpy())
    texts = len(values)
    drawn = torch.randint(texts, (DRAWS, texts), generator=torch.Generator().manual_seed(0))
    times = torch.zeros(DRAWS, texts, dtype=torch.float64).scatter_add_(1, drawn, torch.ones_like(drawn).double())
    low, high = _ends(pooled_taus(values, times))
    return _said("pooled", float(found.statistic), low, high, float(found.pvalue), values.numel())


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
    reading: str, tau: float | None, low: float | None, high: float | None, p: float | None, n: int
) -> dict[str, Any]:
    tau, low, high, p = (number(value) for value in (tau, low, high, p))
    found = {"reading": reading, "tau": tau, "low": low, "high": high, "p": p, "n": n}
    return found | {"meaning": _meaning(tau, low, high)}


def _meaning(tau: float | None, low: float | None, high: float | None) -> str:
    """In words: larger λ is sparser."""
    if tau is None or low is None or high is None:
        return "undefined"
    if low > 0:
        return "rises as attention gets sparser"
    return "falls as attention gets sparser" if high < 0 else "cannot tell"
