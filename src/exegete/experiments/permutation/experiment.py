"""Permutation: does the prediction care which word carries which weight? (Jain & Wallace 2019, section 4.2, figure 6)

Weights are shuffled over the keys of a text, many times, with the states as they are; those of several heads all in the
same order. Per text the median over draws of

    TVD = ½ Σ_c |p_c − p'_c|        and of        |Δ margin|, margin = z_ĉ − max_{c≠ĉ} z_c

ĉ being the class predicted with the model's own weights. A probability near 0 or 1 hardly moves whatever the weights
do, which is why the margin of logits stands beside it. A median of an even number of draws is the mean of the two
middle ones. A text with a single key has nothing to permute: it is null, and counted.

Of a model with several layers the same can be asked deeper: `sites` names where weights are permuted besides the
readout, each place on its own; there every head and query has an order of its own over all the tokens that it may look
at, symbols included. What lies below the lowest of the layers is computed once for all draws.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.common.contract import KINDS, Subject
from exegete.experiments.common.counterfactuals import facts, frame, group_rows, margins, median, spread_columns
from exegete.experiments.common.depth import add_places, at_each, at_readout, check_places
from exegete.experiments.common.experiment import OfWeights
from exegete.experiments.common.one_site import predict_each
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.common.side_by_side import float_column
from exegete.interventions.permute import Permute, permuted_together
from exegete.interventions.sites import choose_sites
from exegete.training.evaluation import predict

KEYS = ("task", "model", "split", "sites")
MEASURES = {"median_tvd": 1.0, "median_logit": None, "flips": 1.0}  # and the most that each can be
TVD = "median TVD of the prediction over permutations"
MOVED = 0.1  # median TVD beyond which permuting the weights has moved a prediction


@dataclass(frozen=True)
class Permutation(OfWeights):
    """A model's own weights on other words, many times."""

    draws: int = 100
    seed: int = 0
    sites: tuple[str, ...] = ("readout",)  # where; also "each", "every" or places such as "encoder" and "encoder.0-2"
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise UsageError("experiment 'permutation': draws is a number of permutations, 1 or more")
        check_places("permutation", self.sites)

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and place: medians over draws, and the share of draws with another class."""
        own = self.measured(subject, open_pooled(subject.model, subject.examples))
        sites = subject.model.sites
        return at_each(self.sites, sites, lambda where: own if where is None else self._deeper(subject, own, where))

    def _deeper(self, subject: Subject, own: pl.DataFrame, where: str) -> pl.DataFrame:
        """Rows where the weights of other sites are permuted, a pass per draw; facts are those of the readout."""
        lowest = choose_sites(where, subject.model.sites)[0]  # what the model doesn't have is refused
        seeds = (stable_seed("permutation", self.seed, draw) for draw in range(self.draws))
        before = predict(subject.model, subject.examples).double()[:, None]
        orders = [Permute(where, seed=seed) for seed in seeds]
        drawn = predict_each(subject.model, subject.examples, lowest, orders)
        several = torch.tensor([len(e) > 1 for e in subject.examples])
        found = _medians(before, torch.stack(drawn, 1).double(), subject.predicted, several)
        return own.with_columns(**{name: float_column(value) for name, value in found.items()}, sites=pl.lit(where))

    def measured(self, subject: Subject, pools: Iterable[Pooled]) -> pl.DataFrame:
        """The rows of texts that are encoded already."""
        parts = [facts(subject, pool) | self._permuted(pool, subject.predicted[pool.members]) for pool in pools]
        return frame(parts, subject.examples)

    def _permuted(self, pool: Pooled, predicted: Tensor) -> dict[str, Tensor]:
        """Medians over draws and the share of flips, [batch] each; NaN for a single key."""
        some = pool.opened.movable
        draws = permuted_together(pool.weights, some, pool.ids, self.seed, self.draws)  # [batch, draw, head, key]
        draws = draws.where(some[:, None, None], pool.weights[:, None])
        return _medians(pool.logits[:, None], pool.decode(draws), predicted.to(some.device), some.sum(-1) > 1)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By class and bin of the largest weight (and all): n, undefined, mean, interval, median; `moved` is the share
        of texts whose median TVD is above 0.1. Without any effect of the weights all of it would be 0.
        """
        return pl.DataFrame(
            [
                said
                | {"measure": measure}
                | spread_columns(group, measure, most)
                | {"moved": (group[measure] > MOVED).mean() if measure == "median_tvd" else None}
                for said, group in group_rows(add_places(rows), KEYS)
                for measure, most in MEASURES.items()
            ],
            infer_schema_length=None,
        )

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Seed by seed: means, and the share of texts that permuting moves."""
        means = pl.col("median_tvd", "median_logit", "flips", "max_attention").mean()
        counted = (pl.col("median_tvd").count().alias("n"), pl.col("median_tvd").null_count().alias("undefined"))
        moved = (pl.col("median_tvd") > MOVED).mean().alias("moved")
        return {"seeds": add_places(rows).group_by(*KEYS, "seed", maintain_order=True).agg(*counted, means, moved)}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Violins of both medians over bins of the largest weight, by class; by kind and by layer, where several."""
        from exegete.experiments.common.depth_figure import ALL, dots_by_place
        from exegete.experiments.permutation.kinds_figure import across
        from exegete.report.violin import Axis, violin

        rows = at_readout(rows)
        tvd, logit = Axis(TVD, 1.0), Axis("median change of the logits' margin over permutations")
        charts: dict[str, Any] = {
            "tvd": violin(rows, "median_tvd", tvd),
            "logit": violin(rows, "median_logit", logit),
        }
        if rows["kind"].n_unique() > 1:
            charts["kinds"] = across(rows, "median_tvd", tvd, KINDS)
        return charts | dots_by_place(summary, TVD, ALL | {"measure": "median_tvd"})


def _medians(own: Tensor, logits: Tensor, predicted: Tensor, several: Tensor) -> dict[str, Tensor]:
    """Of logits [batch, 1, class] and [batch, draw, class]: [batch] each; NaN where there is one key."""
    margin, other = margins(own, predicted), margins(logits, predicted)  # [batch, 1], [batch, draw]
    found = {
        "median_tvd": median(_tvd(own, logits, margin, other)),
        "median_logit": median((other - margin).abs()),
        "flips": (other < 0).double().mean(-1),
    }
    return {name: value.where(several, torch.nan) for name, value in found.items()}


def _tvd(own: Tensor, logits: Tensor, margin: Tensor, other: Tensor) -> Tensor:
    """TVD of predictions, [batch, draw]; of two classes it is |Δp| with p = σ(margin), which is faster."""
    if logits.shape[-1] == 2:
        return (other.sigmoid() - margin.sigmoid()).abs()
    return (logits.softmax(-1) - own.softmax(-1)).abs().sum(-1) / 2
