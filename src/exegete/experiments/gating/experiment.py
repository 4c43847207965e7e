"""Gating: does a classifier of single texts do as well with gates in place of attention? (Vashishth et al. 2019)

Their proposition 4.1: without a second sequence that asks, attention is a gate: weights that words fight for, and gates
that every word has to itself, can do the same. So the same model is trained anew with σ(z_t) / n in place of a
distribution (projection `gates`). Asked: same accuracy? same predictions? and do its gates rank the words of a text as
the weights of the model did? Retraining alone changes all of that, so the same model with another seed stands beside.

Nothing makes gates shut: a larger context is a larger logit, and training may leave them all open, near 1. Such gates
choose nothing, and their order is one of tiny differences. So every text's mean gate and the spread of its gates are
measured too, and τ is given once more for texts whose gates do differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.pooling import open_pooled
from exegete.experiments.common.side_by_side import (
    TextsAsSeen,
    companion_sees,
    comparison_refusal,
    float_column,
    see_texts,
    text_facts,
)
from exegete.experiments.common.tallies import class_of, mean_with_interval
from exegete.measures.rank import kendall
from exegete.models.capabilities import SelfAttentive, Voting, Writing
from exegete.models.contract import Predictor
from exegete.tasks.example import Example, Task
from exegete.training.recipe import Recipe

GATED, AGAIN = "gated", "again"
OTHER_SEED = 1  # added to a model's own: a study of seeds in a row has trained it already
DIALS = ("lam", "alpha", "learned")  # settings of projections that gates don't have
KEYS = ("task", "model", "split", "measure", "who")
SPREAD = 0.01  # standard deviation from which on the gates of a text do differ
# By measure and who: the number of a row. A difference says what gates change beyond what another seed does.
VALUES: dict[tuple[str, str], pl.Expr] = {
    ("accuracy", "attention"): pl.col("correct").cast(pl.Float64),
    ("accuracy", "gates"): pl.col("gated_correct").cast(pl.Float64),
    ("accuracy", "another seed"): pl.col("again_correct").cast(pl.Float64),
    ("change", "gates"): pl.col("value"),
    ("change", "another seed"): pl.col("again_correct").cast(pl.Float64) - pl.col("correct").cast(pl.Float64),
    ("tau", "gates"): pl.col("tau"),
    ("tau", "gates that differ"): pl.when(pl.col("gate_spread") >= SPREAD).then(pl.col("tau")),
    ("tau", "another seed"): pl.col("tau_again"),
    ("tau", "difference"): pl.col("tau") - pl.col("tau_again"),
    ("same", "gates"): pl.col("agrees").cast(pl.Float64),
    ("same", "another seed"): pl.col("agrees_again").cast(pl.Float64),
    ("gate", "gates"): pl.col("gate"),
    ("gate_spread", "gates"): pl.col("gate_spread"),
}
LEAST = {"change": -1.0, "tau": -1.0}  # that a measure can be, otherwise 0; the most is 1


@dataclass(frozen=True)
class Gating(Question):
    """A model, the same with gates, and the same with another seed, on the same texts."""

    needs_labels = True

    of_summary = ("gating",)

    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if self.texts is not None and self.texts < 1:
            raise UsageError("experiment 'gating': texts is a number of texts, 1 or more")

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be one attention over the words of a text, which could be gates and isn't."""
        if isinstance(model, Voting):
            return "it trains the model with gates in place of attention, and ladder has gates already"
        if len(model.sites) > 1 and not isinstance(model, Writing):
            return f"it compares weights of words in one attention, and {parse(model.spec).name} has several"
        if isinstance(model, SelfAttentive) and model.sites[-1:] == model.self_attention:
            return "it trains the model with gates in place of an attention that pools, and this one has none"
        return comparison_refusal(model)

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        """The model with gates, and the model with another seed."""
        name, settings = parse(model)
        kept = {key: value for key, value in settings.items() if key not in DIALS}
        return {
            GATED: Recipe(model=str(Spec(name, kept | {"projection": "gates"}))),
            AGAIN: Recipe(seed=seed + OTHER_SEED),
        }

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example; τ is null where a text has one word, or where all weights are equal."""
        base = see_texts(subject.model, subject.examples)
        gated, again = (companion_sees(subject.companions[name], subject.examples) for name in (GATED, AGAIN))
        gate, spread = _gates(subject.companions[GATED].classifier, subject.examples)
        gold = torch.tensor([e.label for e in subject.examples])
        right = {name: found.answers == gold for name, found in (("", base), (GATED, gated), (AGAIN, again))}
        return pl.DataFrame(
            {
                **text_facts(subject, base),
                "correct": right[""].tolist(),
                "gated_correct": right[GATED].tolist(),
                "again_correct": right[AGAIN].tolist(),
                "value": (right[GATED].double() - right[""].double()).tolist(),
                "tau": float_column(_tau(base, gated)),
                "tau_again": float_column(_tau(base, again)),
                "gate": float_column(gate),
                "gate_spread": float_column(spread),
                "agrees": (gated.answers == base.answers).tolist(),
                "agrees_again": (again.answers == base.answers).tolist(),
            }
        )

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Accuracy, its change, τ, equal predictions and gates, by whom: n, undefined, mean, interval."""
        groups = rows.partition_by(KEYS[:3], as_dict=True, maintain_order=True)
        found = [
            dict(zip(KEYS, (*key, *what), strict=True)) | _numbers(group.with_columns(value=value), *what)
            for key, group in groups.items()
            for what, value in VALUES.items()
        ]
        return pl.DataFrame(found, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """By predicted class: how far gates and another seed rank words as the model does, and how open gates are."""
        keys = ["task", "model", "split", "predicted"]
        by_class = rows.with_columns(predicted=class_of("predicted")).group_by(keys, maintain_order=True).agg(
            pl.col("tau").count().alias("n"), pl.col("tau").null_count().alias("undefined"),
            pl.col("tau", "tau_again", "gate").mean(), pl.col("value").mean().alias("change"),
        )  # fmt: skip
        return {"classes": by_class.sort(keys)}


def _gates(model: Predictor, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the gates of every text, [example]; NaN where no word is gated."""
    mean, spread = torch.full((2, len(examples)), torch.nan, dtype=torch.float64)
    for pool in open_pooled(model, examples):
        n = pool.mask.sum(-1).where(pool.mask.any(-1), torch.nan)  # weights are gates / n
        gates = pool.key_weights * n[:, None]  # [batch, key]
        middle = gates.sum(-1) / n  # [batch]
        apart = (gates - middle[:, None]).square() * pool.mask
        mean[pool.members], spread[pool.members] = middle.cpu(), (apart.sum(-1) / n).sqrt().cpu()
    return mean, spread


def _tau(one: TextsAsSeen, other: TextsAsSeen) -> Tensor:
    """τ-b of the weights of every text; gates and weights are compared by their order alone."""
    return kendall(one.key_weights, other.key_weights).tau


def _numbers(group: pl.DataFrame, measure: str, who: str) -> dict[str, Any]:
    """Seeds, n, undefined, mean and interval of `value`, within what the measure can be."""
    least, most = (-2.0, 2.0) if who == "difference" else (LEAST.get(measure, 0.0), 1.0)
    return mean_with_interval(group, "value", least, most)
