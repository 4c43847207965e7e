"""Seed stability: do models that differ by their seed alone attend to the same words? (Wiegreffe & Pinter 2019, test 2)

Per text the median over other seeds of JSD(α, α_other), by the largest weight of α; beside it the mean over seeds of
the TVD of predictions (the true one, ½ Σ |p − p'|). Flat weights are near all others: a small JSD says little alone. So
the other's weights are permuted too, and what counts is the ratio of the two: 0 for the same weights, about 1 for
weights that have nothing in common but their shape.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import OfDistributions
from exegete.experiments.common.search_weights import search_weights
from exegete.experiments.common.side_by_side import (
    DRAWS,
    TextsAsSeen,
    companion_sees,
    distance,
    float_column,
    permuted_distance,
    see_texts,
    text_facts,
)
from exegete.experiments.common.summaries import or_none
from exegete.experiments.common.tallies import ALL, SAME, mean_with_interval, shown_classes
from exegete.measures.bins import BINS, bin_of
from exegete.measures.divergence import normalised_entropy, tvd
from exegete.training.recipe import Recipe

CELL = ("task", "model", "seed", "split")
KEYS = ("task", "model", "class", "bin", "measure")
EPSILON = 0.01  # TVD up to which an adversary predicts the same (Jain & Wallace 2019)
MOST = {"tvd": 1.0, "ratio": math.inf}  # the largest value there can be; of a JSD it is ln 2


@dataclass(frozen=True)
class SeedStability(OfDistributions):
    """The weights of a model against those of the same model with other seeds."""

    seeds: tuple[int, ...] = (1, 2, 3, 4)  # a model's own is left out
    draws: int = DRAWS  # permutations of the other's weights; their mean is the reference
    adversaries: bool = False  # search, per text, the furthest weights that predict the same, for comparison
    seed: int = 0  # of the permutations
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < max(2, len(self.seeds)):
            raise UsageError("experiment 'seed_stability': give at least two seeds, and every one once")
        if self.draws < 1:
            raise UsageError("experiment 'seed_stability': draws is a number of permutations, 1 or more")

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:  # noqa: ARG002
        """The model with every other seed."""
        return {f"seed_{other}": Recipe(seed=other) for other in self.seeds if other != seed}

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and other seed; divergences of texts with one key, or without weights, are null."""
        base = see_texts(subject.model, subject.examples)
        facts = pl.DataFrame(text_facts(subject, base)).with_columns(
            max_attention=float_column(base.key_weights.nan_to_num(0.0).amax(-1)),
            entropy=float_column(normalised_entropy(base.weights).nanmean(-1).where(base.compared, torch.nan)),
        )
        searched = float_column(self._searched(subject, base))
        ids = torch.tensor([e.id for e in subject.examples])
        parts = []
        for name, companion in subject.companions.items():
            other = companion_sees(companion, subject.examples)
            parts.append(
                facts.with_columns(
                    other=pl.lit(int(name.removeprefix("seed_")), pl.Int64),
                    jsd=float_column(distance(base, other)),
                    permuted_jsd=float_column(permuted_distance(base, other, ids, self.seed, self.draws)),
                    tvd=float_column(tvd(base.probabilities, other.probabilities)),
                    adversary_jsd=searched,
                )
            )
        return pl.concat(parts).sort("example", maintain_order=True)

    def _searched(self, subject: Subject, base: TextsAsSeen) -> Tensor:
        """ε-max JSD of every text, [example]: the largest JSD of searched weights that predict the same."""
        if not self.adversaries:
            return torch.full((len(subject.examples),), torch.nan, dtype=torch.float64)
        (found,) = search_weights(subject, base, (EPSILON,), self.seed, draws=1)
        return found.jsd

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By class, bin of the largest weight (and all together) and measure: n, undefined, mean, interval, reference.

        The reference of a JSD is the same with the other's weights permuted, that of their ratio is 1.
        """
        measures = ["jsd", "permuted_jsd", "ratio", "tvd", *(["adversary_jsd"] if self.adversaries else [])]
        found = [
            dict(zip(KEYS, (*key, measure), strict=True)) | _numbers(group, measure)
            for key, group in _groups(per_text(rows))
            for measure in measures
        ]
        return pl.DataFrame(found, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """The divergences of every pair of seeds."""
        keys = ["task", "model", "seed", "other"]
        pairs = rows.group_by(keys, maintain_order=True).agg(
            pl.col("jsd").count().alias("n"),
            pl.col("jsd").null_count().alias("undefined"),
            pl.col("jsd", "permuted_jsd", "tvd").mean(),
        )
        return {"pairs": pairs.with_columns(ratio_of_means=pl.col("jsd") / pl.col("permuted_jsd"))}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """JSD by bin of the largest weight, with the permuted beside it, and JSD against the change of predictions."""
        from exegete.experiments.seed_stability import figure

        texts = per_text(rows)
        return {"violins": figure.seed_violins(texts), "scatter": figure.seed_scatter(texts)}


def per_text(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per cell and text: medians of JSD and permuted JSD over the other seeds, the mean of TVD, the ratio.

    The ratio is that of the means over the other seeds.
    """
    texts = rows.group_by([*CELL, "example"], maintain_order=True).agg(
        pl.col("n", "gold", "predicted", "max_attention", "entropy", "adversary_jsd").first(),
        others=pl.col("other").n_unique(),
        jsd=pl.col("jsd").median(),
        permuted_jsd=pl.col("permuted_jsd").median(),
        tvd=pl.col("tvd").mean(),
        ratio=pl.when(pl.col("permuted_jsd").mean() > SAME).then(pl.col("jsd").mean() / pl.col("permuted_jsd").mean()),
    )
    return texts.with_columns(bin=bin_of(pl.col("max_attention")))


def _groups(texts: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    """Every task and model: all classes, then each one; of these all texts, then those of each bin."""
    for (task, model), cell in texts.partition_by(["task", "model"], as_dict=True, maintain_order=True).items():
        for kind in (ALL, *shown_classes(cell["predicted"])):
            for bin_ in (ALL, *BINS):
                group = cell.filter((pl.lit(kind) == ALL) | (pl.col("predicted") == kind))
                group = group.filter((pl.lit(bin_) == ALL) | (pl.col("bin") == bin_))
                if not group.is_empty():
                    yield (task, model, kind, bin_), group


def _numbers(group: pl.DataFrame, measure: str) -> dict[str, Any]:
    """Seeds, n, undefined, mean, interval and reference of one measure over the texts of a group."""
    reference = {"jsd": or_none(group["permuted_jsd"].mean()), "ratio": 1.0}
    found = mean_with_interval(group, measure, most=MOST.get(measure, math.log(2)))
    seeds = {"seeds": found.pop("seeds"), "others": group["others"].max()}
    return seeds | found | {"reference": reference.get(measure)}
