"""Layers: what is left of a model when layer after layer attends to the wrong words? (Vashishth et al. 2019, figure 4)

Every row of attention is shuffled over its real keys (or made uniform, or silenced: any intervention), in the first
layer, then in the first two, and so on, at inference only; on request from the last layer down, or in one layer at a
time. Each group of sites is altered alone: self-attention of the encoder, self-attention of the decoder,
cross attention; in a classifier the encoder's layers and the attention that pools. The score is the accuracy of a
classifier and the corpus BLEU of a translator's greedy translations, with the shuffled weights at every step. A model
whose score stays has no need of where these weights are. A decoder's step is shuffled over itself and the steps before
it, never over later ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import stable_seed
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.summaries import interval_of, or_none
from exegete.experiments.common.tallies import clipped_mean, majority, values_by_seed
from exegete.experiments.common.translations import (
    bleu_change,
    bleu_scores,
    count_columns,
    count_translations,
    no_counts,
)
from exegete.interventions.catalogue import INTERVENTIONS
from exegete.interventions.contract import Drawn
from exegete.interventions.restriction import AtSites
from exegete.interventions.sites import group_sites
from exegete.models.capabilities import Writing
from exegete.models.contract import Intervention, Predictor
from exegete.tasks.example import Task
from exegete.training.evaluation import predict

CELL = ("task", "model", "split")
KEYS = (*CELL, "intervention", "order", "group", "layers", "of")
Order = Literal["first", "last", "alone"]
UNALTERED = "unaltered"  # the group of the model as it is
ACCURACY, BLEU = "accuracy", "BLEU"


class Condition(NamedTuple):
    """Which sites are altered, and how."""

    intervention: str
    order: str
    group: str
    layers: int  # how many, from the first or from the last; alone: which one, from 1
    of: int  # how many the group has
    sites: tuple[str, ...]


AS_IT_IS = Condition("none", "none", UNALTERED, 0, 0, ())


@dataclass(frozen=True)
class Layers(Question):
    """Accuracy or BLEU with ever more layers altered."""

    needs_labels = True

    whole = True  # of a translator it asks about whole translations

    groups: tuple[str, ...] = ()  # such as encoder, decoder, cross; all that a model has, unless given
    interventions: tuple[str, ...] = ("permute",)  # what is done to a layer's weights
    orders: tuple[Order, ...] = ("first",)  # from the first layer, from the last, or each layer alone
    draws: int = 1  # permutations of every text, or other draws
    seed: int = 0
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise UsageError(f"experiment 'layers': draws is 1 or more, not {self.draws}")
        if len(set(self.groups)) < len(self.groups):
            raise UsageError("experiment 'layers': name every group only once")
        for name in ("interventions", "orders"):
            if not getattr(self, name) or len(set(getattr(self, name))) < len(getattr(self, name)):
                raise UsageError(f"experiment 'layers': name at least one of its {name}, and each once")
        for name in self.interventions:
            INTERVENTIONS.make(name)  # a name that isn't there is refused before anything is computed

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be more than one attention, and one that is asked about."""
        if len(model.sites) < 2:
            return "it permutes one layer after the other, and this model has at most one attention: ask permutation"
        if not self._conditions(model):
            has = ", ".join(group_sites(model.sites))
            return f"it was asked about {' and '.join(self.groups)}, and this model has {has}"
        return None

    def _conditions(self, model: Predictor) -> list[Condition]:
        """Each group that is asked about, with ever more layers."""
        return [
            Condition(intervention, order, group, layers, len(sites), _ordered(sites, order, layers))
            for intervention in self.interventions
            for order in self.orders
            for group, sites in group_sites(model.sites).items()
            if not self.groups or group in self.groups
            for layers in range(1, len(sites) + 1)
        ]

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and condition: whether it is right (a mean over draws), or what BLEU needs of it."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(f"experiment 'layers': {reason}")
        parts = [self._asked(subject, condition) for condition in (AS_IT_IS, *self._conditions(subject.model))]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _asked(self, subject: Subject, condition: Condition) -> pl.DataFrame:
        model, examples = subject.model, subject.examples
        said = {key: value for key, value in condition._asdict().items() if key in KEYS}
        texts = {"example": [e.id for e in examples], "n": [len(e) for e in examples]}
        ats = self._interventions(condition)
        if isinstance(model, Writing):
            counts = torch.stack([count_translations(model, examples, at) for at in ats]).sum(0)
            nothing = pl.Series([None] * len(examples))
            found = {"gold": nothing.cast(pl.String), "value": nothing.cast(pl.Float64), **count_columns(counts)}
        else:
            gold = [subject.task.labels[e.label] for e in examples]
            right = torch.stack([_right(subject, at) for at in ats]).mean(0)
            found = {"gold": pl.Series(gold), "value": pl.Series(right.numpy()), **no_counts(len(examples))}
        measure = BLEU if isinstance(model, Writing) else ACCURACY
        columns = [pl.lit(value).alias(name) for name, value in {**said, "measure": measure}.items()]
        return pl.DataFrame(texts).with_columns(*columns).with_columns(**found)

    def _interventions(self, condition: Condition) -> list[Intervention | None]:
        """One per draw; the model as it is needs none."""
        if not condition.sites:
            return [None]
        made = INTERVENTIONS.make(condition.intervention)
        if not isinstance(made, Drawn):
            return [AtSites(condition.sites, made)]
        seeds = (stable_seed("layers", self.seed, draw) for draw in range(self.draws))
        return [AtSites(condition.sites, replace(made, seed=seed)) for seed in seeds]

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By intervention, order, group and number of layers: n, accuracy (0 to 1) or BLEU (0 to 100), its interval.

        Beside it the model as it is (`unaltered`) and the change from it, paired by text, whose reference is 0. The
        chance level of accuracy is `majority`: always the most frequent class. Intervals are over texts for one seed,
        over texts and seeds for several.
        """
        found = [
            dict(zip(KEYS, (*cell, *key), strict=True)) | _numbers(group, part.filter(pl.col("group") == UNALTERED))
            for cell, part in rows.partition_by(CELL, as_dict=True, maintain_order=True).items()
            for key, group in part.partition_by(KEYS[3:], as_dict=True, maintain_order=True).items()
        ]
        return pl.DataFrame(found, infer_schema_length=None)

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """Figure 4, for each measure that there is."""
        from exegete.experiments.layers.figure import layers

        parts = summary.partition_by("measure", maintain_order=True)
        return {f"layers_{part['measure'][0].lower()}": layers(part) for part in parts}


def _ordered(sites: tuple[str, ...], order: Order, layers: int) -> tuple[str, ...]:
    """So many of a group's sites: the first, the last, or that one alone."""
    return {"first": sites[:layers], "last": sites[-layers:], "alone": sites[layers - 1 : layers]}[order]


def _right(subject: Subject, at: Intervention | None) -> Tensor:
    """1.0 where the prediction is the gold class: [example], float64."""
    predicted = predict(subject.model, subject.examples, at).argmax(-1)
    return (predicted == torch.tensor([e.label for e in subject.examples])).double()


def _numbers(group: pl.DataFrame, unaltered: pl.DataFrame) -> dict[str, Any]:
    measure = group["measure"][0]
    told = _bleu(group, unaltered) if measure == BLEU else _accuracy(group, unaltered)
    return {"measure": measure, "seeds": group["seed"].n_unique(), **told}


def _bleu(group: pl.DataFrame, unaltered: pl.DataFrame) -> dict[str, Any]:
    own = bleu_scores(group)
    return {**own, "unaltered": bleu_scores(unaltered)["mean"], **bleu_change(group, unaltered), "majority": None}


def _accuracy(group: pl.DataFrame, unaltered: pl.DataFrame) -> dict[str, Any]:
    after, before = (values_by_seed(part, pl.col("value")) for part in (group, unaltered))
    change = interval_of(after - before, 1.0)
    return {
        **clipped_mean(after),
        "unaltered": or_none(before.nanmean()),
        **dict(zip(("change", "change_low", "change_high"), map(or_none, change[:3]), strict=True)),
        "majority": majority(unaltered),
    }
