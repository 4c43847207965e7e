"""Permutation: does the prediction care which word carries which weight? (Jain & Wallace 2019, section 4.2, figure 6)

Weights are shuffled over the keys of a text, many times, with the states as they are; those of several heads all in the
same order. Per text the median over draws of

    TVD = ½ Σ_c |p_c − p'_c|        and of        |Δ margin|, margin = z_ĉ − max_{c≠ĉ} z_c

ĉ being the class predicted with the model's own weights. A probability near 0 or 1 hardly moves whatever the weights
do, which is why the margin of logits stands beside it. A median of an even number of draws is the mean of the two
middle ones. A text with a single key has nothing to permute: it is null, and counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import KINDS, Subject
from exegete.experiments.common.counterfactual import facts, frame, grouped, margins, median, spread
from exegete.experiments.common.experiment import OfWeights
from exegete.experiments.common.pooling import Pooled, pooled
from exegete.interventions.permute import permuted_together

KEYS = ("task", "model", "split")
MEASURES = {"median_tvd": 1.0, "median_logit": None, "flips": 1.0}  # and the most that each can be
TVD = "median TVD of the prediction over permutations"
MOVED = 0.1  # median TVD beyond which permuting the weights has moved a prediction (PROTOCOLS 14)


@dataclass(frozen=True)
class Permutation(OfWeights):
    """The same weights on other words, many times."""

    draws: int = 100
    seed: int = 0
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise UsageError("experiment 'permutation': draws is a number of permutations, 1 or more")

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example: medians over draws, and the share of draws with another class."""
        return self.measured(subject, pooled(subject.model, subject.examples))

    def measured(self, subject: Subject, pools: Iterable[Pooled]) -> pl.DataFrame:
        """The same from texts that are encoded already."""
        parts = [facts(subject, pool) | self._permuted(pool, subject.predicted[pool.members]) for pool in pools]
        return frame(parts, subject.examples)

    def _permuted(self, pool: Pooled, predicted: Tensor) -> dict[str, Tensor]:
        """Medians over draws and the share of flips, [batch] each; NaN for a single key."""
        some = pool.opened.movable
        draws = permuted_together(pool.weights, some, pool.ids, self.seed, self.draws)  # [batch, draw, head, key]
        draws = draws.where(some[:, None, None], pool.weights[:, None])
        own, logits = pool.logits[:, None], pool.decode(draws)
        margin, other = margins(own, predicted), margins(logits, predicted)  # [batch, 1], [batch, draw]
        found = {
            "median_tvd": median(_tvd(own, logits, margin, other)),
            "median_logit": median((other - margin).abs()),
            "flips": (other < 0).double().mean(-1),
        }
        several = some.sum(-1) > 1
        return {name: value.where(several, torch.nan) for name, value in found.items()}

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By class and bin of the largest weight (and all): n, undefined, mean, interval, median; `moved` is the share
        of texts whose median TVD is above 0.1. Without any effect of the weights all of it would be 0.
        """
        return pl.DataFrame(
            [
                said
                | {"measure": measure}
                | spread(group, measure, most)
                | {"moved": (group[measure] > MOVED).mean() if measure == "median_tvd" else None}
                for said, group in grouped(rows, KEYS)
                for measure, most in MEASURES.items()
            ],
            infer_schema_length=None,
        )

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Seed by seed: means, and the share of texts that permuting moves."""
        means = pl.col("median_tvd", "median_logit", "flips", "max_attention").mean()
        counted = (pl.col("median_tvd").count().alias("n"), pl.col("median_tvd").null_count().alias("undefined"))
        moved = (pl.col("median_tvd") > MOVED).mean().alias("moved")
        return {"seeds": rows.group_by(*KEYS, "seed", maintain_order=True).agg(*counted, means, moved)}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """Violins of both medians over bins of the largest weight, by class; and by kind, where tasks have several."""
        from exegete.experiments.permutation.kinds_figure import across
        from exegete.page.violin import Axis, violin

        tvd, logit = Axis(TVD, 1.0), Axis("median change of the logits' margin over permutations")
        charts: dict[str, Any] = {
            "tvd": violin(rows, "median_tvd", tvd),
            "logit": violin(rows, "median_logit", logit),
        }
        if rows["kind"].n_unique() > 1:
            charts["kinds"] = across(rows, "median_tvd", tvd, KINDS)
        return charts


def _tvd(own: Tensor, logits: Tensor, margin: Tensor, other: Tensor) -> Tensor:
    """TVD of predictions, [batch, draw]; of two classes it is |Δp| with p = σ(margin), which is faster."""
    if logits.shape[-1] == 2:
        return (other.sigmoid() - margin.sigmoid()).abs()
    return (logits.softmax(-1) - own.softmax(-1)).abs().sum(-1) / 2
