"""Adversary training: can a model learn to predict the same with other attention? (Wiegreffe & Pinter 2019, test 4)

Searched adversaries (Jain & Wallace 2019) give every text weights of its own, which no model computes. Here a model is
trained to predict as the base does and to attend elsewhere, with λ between the two (exegete.training.adversary).
*Unfrozen*: a new model from scratch, with the seed after the base's, so that it is not born as the base. *Frozen*
(Meister et al. 2021, table 5): all of the base, of which attention alone moves. It is drawn anew first: at the base's
own attention the divergence has no gradient, and an adversary that starts there stays there.

TVD is the true one, ½ Σ_c |p_a(c) − p_b(c)|; the authors print half of it. A divergence of weights is small whenever
both are flat: beside each stands that with the adversary's weights permuted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.search_weights import search_weights
from exegete.experiments.common.side_by_side import (
    DRAWS,
    TextsAsSeen,
    companion_sees,
    comparison_refusal,
    distance,
    float_column,
    permuted_distance,
    see_texts,
    text_facts,
)
from exegete.experiments.common.summaries import or_none
from exegete.experiments.common.tallies import SAME, clipped_mean, f1_by_seed, of_tasks, values_by_seed
from exegete.measures.divergence import tvd
from exegete.models.capabilities import Trainable
from exegete.models.contract import Predictor
from exegete.models.settings import MODELS, PairSettings
from exegete.tasks.example import Task
from exegete.training.objectives import OBJECTIVES
from exegete.training.recipe import Fooling, Recipe

UNFROZEN, FROZEN, SEED, SEARCHED = KINDS = ("unfrozen", "frozen", "seed", "searched")
TOLERANCES = (0.01, 0.05)  # TVD up to which two models predict the same


class _Other(NamedTuple):
    """What the texts of a subject are under one adversary."""

    said: dict[str, Any]  # kind, lam, other, tolerance
    tvd: Tensor  # [example]
    jsd: Tensor  # [example], NaN for texts of one key or without weights
    permuted_jsd: Tensor  # [example], likewise
    predicted: Tensor  # [example]


@dataclass(frozen=True)
class AdversaryTraining(Question):
    """A model against models that were trained to attend elsewhere, other seeds, and searched weights."""

    needs_labels = True

    of_summary = ("curve",)
    of_rows = ("violins",)

    lams: tuple[float, ...] = (0.001, 0.003, 0.01)  # λ of unfrozen adversaries
    frozen_lams: tuple[float, ...] = (0.01, 0.03, 0.1)  # λ of frozen ones
    frozen: bool = True
    unfrozen: bool = True
    epochs: int = 20
    patience: int = 5
    warm: bool = False  # whether unfrozen ones start from the model, with its attention drawn anew
    seeds: tuple[int, ...] = ()  # other seeds to put beside; a model's own is left out
    search: bool = True  # whether searched adversaries are put beside
    legacy: bool = False  # halve the TVD in training, as the authors' code does
    draws: int = DRAWS  # permutations of an adversary's weights; their mean is the reference
    seed: int = 0  # of these
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        if not (self.frozen and self.frozen_lams) and not (self.unfrozen and self.lams):
            raise UsageError("experiment 'adversary_training': train frozen or unfrozen adversaries, with λ in `lams`")
        for name in ("lams", "frozen_lams", "seeds"):
            values = [f"{value:g}" for value in getattr(self, name)]
            if len(set(values)) < len(values):
                raise UsageError(f"experiment 'adversary_training': name every one of `{name}` once")
        for lam in (*self.lams, *self.frozen_lams):
            OBJECTIVES.make(self._objective(lam))
        if min(self.epochs, self.patience, self.draws) < 1:
            raise UsageError("experiment 'adversary_training': epochs, patience and draws are 1 or more")

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be weights from which a class is predicted, which are a distribution, and which can be moved."""
        fixed = isinstance(model, Trainable) and not list(model.attention_parameters())
        if (reason := comparison_refusal(model)) is None and self.frozen and fixed and _movable(model.spec):
            return "its attention has no parameters of its own, so nothing could move alone: set frozen = false"
        return reason

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        """An adversary for every λ, unfrozen and frozen, and the model with other seeds.

        Attention that is a product of two encoders' states has no weights of its own: there is no frozen one.
        """
        fooling, found = Fooling(self.epochs, self.patience, self.warm), dict[str, Recipe]()
        for lam in self.lams if self.unfrozen else ():
            found[f"{UNFROZEN}_{lam:g}"] = fooling.recipe(self._objective(lam), seed)
        for lam in self.frozen_lams if self.frozen and _movable(model) else ():
            found[f"{FROZEN}_{lam:g}"] = fooling.recipe(self._objective(lam), seed, moves="attention")
        return found | {f"{SEED}_{other}": Recipe(seed=other) for other in self.seeds if other != seed}

    def _objective(self, lam: float) -> str:
        return f"adversary:lam={lam:g}" + (",legacy=true" if self.legacy else "")

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and adversary; divergences of texts with one key, or without weights, are null.

        `positive` is the class whose F1 counts, where there are two.
        """
        base, labels = see_texts(subject.model, subject.examples), subject.task.labels
        gold = torch.tensor([e.label for e in subject.examples])
        facts = pl.DataFrame(text_facts(subject, base)).with_columns(
            correct=pl.Series((base.answers == gold).numpy()),
            max_attention=float_column(base.key_weights.nan_to_num(0.0).amax(-1)),
            positive=pl.lit(labels[1] if len(labels) == 2 else None, pl.String),
        )
        parts = [facts.with_columns(**_columns(other, gold, labels)) for other in self._others(subject, base)]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _others(self, subject: Subject, base: TextsAsSeen) -> Iterator[_Other]:
        """Every companion, then the searched weights."""
        ids = torch.tensor([e.id for e in subject.examples])
        for name, companion in subject.companions.items():
            other = companion_sees(companion, subject.examples)
            yield _Other(
                _said(name),
                tvd(base.probabilities, other.probabilities),
                distance(base, other),
                permuted_distance(base, other, ids, self.seed, self.draws),
                other.answers,
            )
        if self.search:
            for tolerance, found in zip(
                TOLERANCES, search_weights(subject, base, TOLERANCES, self.seed, self.draws), strict=True
            ):
                yield _Other(_said(SEARCHED, tolerance), *found)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By kind, λ and tolerance: n, TVD and JSD with intervals, accuracy and F1 of base and adversary, and more."""
        return summarise_adversaries(rows)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """As Wiegreffe & Pinter and as Meister et al. print them."""
        found = summarise_adversaries(rows)
        return {"wiegreffe_pinter": wiegreffe_pinter(found), "meister_5": meister_5(found)}


def _movable(model: str) -> bool:
    """Whether the attention of a model has weights that training could move."""
    settings = MODELS.make(model)
    return not isinstance(settings, PairSettings) or settings.attention != "dot" or settings.learned


def _said(name: str, tolerance: float | None = None) -> dict[str, Any]:
    """What a row says of its adversary.

    >>> _said("frozen_0.01")
    {'kind': 'frozen', 'lam': 0.01, 'other': None, 'tolerance': None}
    """
    kind, _, which = name.partition("_")
    lam = float(which) if kind in (UNFROZEN, FROZEN) else None
    return {"kind": kind, "lam": lam, "other": int(which) if kind == SEED else None, "tolerance": tolerance}


def _columns(other: _Other, gold: Tensor, labels: tuple[str, ...]) -> dict[str, Any]:
    types = {"kind": pl.String, "lam": pl.Float64, "other": pl.Int64, "tolerance": pl.Float64}
    found: dict[str, Any] = {name: pl.lit(value, types[name]) for name, value in other.said.items()}
    found |= {name: float_column(getattr(other, name)) for name in ("tvd", "jsd", "permuted_jsd")}
    found["adversary_predicted"] = pl.Series([labels[c] for c in other.predicted.tolist()], dtype=pl.String)
    found["adversary_correct"] = pl.Series((other.predicted == gold).numpy())
    return found


CELL = ("task", "model", "split")
KEYS = (*CELL, "kind", "lam", "tolerance")
UNDEFINED = {"lam": pl.Float64, "tolerance": pl.Float64, "ratio": pl.Float64} | {
    f"{name}{end}": pl.Float64 for name in ("tvd", "jsd", "permuted_jsd", "difference") for end in ("", "_low", "_high")
}
LEAST = {"difference": -1.0}  # that a number can be, otherwise 0
MOST = {"jsd": math.log(2), "permuted_jsd": math.log(2)}  # otherwise 1


def summarise_adversaries(rows: pl.DataFrame) -> pl.DataFrame:
    """By kind, λ and tolerance: means over texts (and seeds) with intervals; other seeds are one kind, their mean.

    undefined counts texts of one key, or without weights, which have no divergence. ratio is JSD over permuted JSD: 0
    for the same weights, about 1 for weights that have nothing in common but their shape. F1 is that of the second
    class of two, and the mean over the task's gold classes where there are more. difference is the adversary's accuracy
    less the base's.
    """
    found = [
        dict(zip(KEYS, key, strict=True)) | _numbers(group, classes)
        for classes, part in of_tasks(rows)
        for key, group in part.partition_by(KEYS, as_dict=True, maintain_order=True).items()
    ]
    return pl.DataFrame(found, schema_overrides=UNDEFINED, infer_schema_length=None)


def _numbers(group: pl.DataFrame, classes: Sequence[str]) -> dict[str, Any]:
    difference = pl.col("adversary_correct").cast(pl.Float64) - pl.col("correct").cast(pl.Float64)
    values = ["tvd", "jsd", "permuted_jsd", "difference"]
    texts = group.with_columns(difference=difference).group_by("seed", "example", maintain_order=True)
    each = texts.agg(pl.col(values).mean(), pl.col("n").first())
    said: dict[str, Any] = {
        "seeds": each["seed"].n_unique(),
        "n": each.height,
        "undefined": each["jsd"].null_count(),
    }
    for name in values:
        said |= _interval(name, each)
    permuted = said["permuted_jsd"]
    said["ratio"] = said["jsd"] / permuted if permuted is not None and permuted > SAME else None
    said |= {f"within_{t:g}": float((group["tvd"] <= t).mean()) for t in TOLERANCES}  # type: ignore[arg-type]
    for who, prefix in (("base", ""), ("adversary", "adversary_")):
        said[f"{who}_accuracy"] = or_none(group[f"{prefix}correct"].mean())
        said[f"{who}_f1"] = _f1(group, f"{prefix}predicted", classes)
    return said


def _interval(name: str, each: pl.DataFrame) -> dict[str, float | None]:
    found = clipped_mean(values_by_seed(each, pl.col(name)), LEAST.get(name, 0.0), MOST.get(name, 1.0))
    return {name: found["mean"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def _f1(group: pl.DataFrame, predicted: str, classes: Sequence[str]) -> float:
    """F1 of the positive class or the mean over classes; the mean over all models (seeds, and other seeds)."""
    models = group.partition_by("seed", "other", maintain_order=True)
    return sum(float(f1_by_seed(model, predicted, classes).nanmean()) for model in models) / len(models)


def wiegreffe_pinter(found: pl.DataFrame) -> pl.DataFrame:
    """F1, TVD and JSD of every adversary; TVD as it is, and halved, as the authors print it."""
    kept = found.filter(pl.col("kind") != SEARCHED)
    return kept.select(
        *CELL, "kind", "lam", "seeds", "n", "base_f1", f1="adversary_f1", tvd="tvd", tvd_low="tvd_low",
        tvd_high="tvd_high", tvd_halved=pl.col("tvd") / 2, jsd="jsd", jsd_low="jsd_low", jsd_high="jsd_high",
        permuted_jsd="permuted_jsd", undefined="undefined",
    )  # fmt: skip


def meister_5(found: pl.DataFrame) -> pl.DataFrame:
    """JSD, accuracy and its difference to the base's, frozen and unfrozen (Meister et al. 2021, table 5)."""
    kept = found.filter(pl.col("kind").is_in([FROZEN, UNFROZEN]))
    return kept.select(
        *CELL, "kind", "lam", "seeds", "n", "jsd", "jsd_low", "jsd_high", "base_accuracy",
        accuracy="adversary_accuracy", difference="difference", difference_low="difference_low",
        difference_high="difference_high", undefined="undefined",
    )  # fmt: skip
