"""Multiverse: how far does the agreement of attention hang on choices that could have been made otherwise?

The papers compare attention with "the gradient" and "leave-one-out" by "Kendall's τ". Each of these words hides
choices: which size of the gradient, with attention held fixed or not, of the logit, the probability or the loss, and
which coefficient over which words. Here all of them are made at once. Every combination is a
specification; the mean coefficient of each, sorted, is a specification curve (Steegen et al. 2016; Simonsohn, Simmons &
Nelson 2020), and the spread of the means is divided among the choices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.base.names import Spec, parse
from exegete.experiments.agreement.experiment import TOPK
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.summaries import columns, interval_of, or_none
from exegete.experiments.multiverse.shares import SPECIFICATION, decompose_spread
from exegete.importance.contract import Quantity
from exegete.importance.gradient import GradientNorm
from exegete.measures.rank import kendall
from exegete.measures.topk import chance, nonzeros

ATTENTION, GRADIENT, OMISSION = "attention", "gradient", "leave_one_out"
OVER_WORDS = ("tau", "tau_corrected", "tau_nonzeros")
SUPPORT = "nonzeros"
KEYS = ("task", "model", *SPECIFICATION)
CERTAIN = 1 - 1e-9  # a chance level from here on leaves nothing above it


@dataclass(frozen=True)
class Multiverse(Question):
    """Attention against every size of the gradient and every leave-one-out, by every coefficient.

    A coefficient is `tau` (τ-b), `tau_corrected` (over the maximum that ties allow), `tau_nonzeros` (τ-b of the words
    that have weight), or a top-k one with its k, which is a number or `nonzeros`: `fagin:k=5`, `legacy:k=nonzeros`.
    """

    norms: tuple[GradientNorm, ...] = ("input", "l1", "l2")
    detached: tuple[bool, ...] = (False, True)
    of: tuple[Quantity, ...] = ("logit", "probability", "loss")  # which the gradient is of
    omissions: tuple[Quantity, ...] = ("logit", "probability")  # what a word's omission is measured by
    coefficients: tuple[str, ...] = (
        *OVER_WORDS, "fagin:k=5", "fagin:k=nonzeros", "legacy:k=5", "legacy:k=nonzeros",
    )  # fmt: skip
    draws: int = 10  # shuffles per text and top-k coefficient; chance is their mean
    seed: int = 0
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        for name in ("norms", "detached", "of", "omissions", "coefficients"):
            given = getattr(self, name)
            if len(set(given)) < len(given):
                raise UsageError(f"experiment 'multiverse': name every choice of `{name}` once")
        if "loss" in self.omissions:
            raise UsageError("experiment 'multiverse': an omission is measured by logit or probability, not by loss")
        if not self.others or not self.coefficients:
            raise UsageError("experiment 'multiverse' has nothing to compare: give it gradients or omissions, by "
                             "some coefficient")  # fmt: skip
        if self.draws < 1:
            raise UsageError(f"experiment 'multiverse': draws is 1 or more, not {self.draws}")
        for coefficient in self.coefficients:
            _check(coefficient)

    @property
    def others(self) -> tuple[str, ...]:
        """What attention is compared with: every gradient, then every leave-one-out."""
        gradients = product(self.norms, self.detached, self.of)
        return (
            *(str(Spec(GRADIENT, {"norm": n, "detach": str(d).lower(), "of": of})) for n, d, of in gradients),
            *(str(Spec(OMISSION, {"of": of})) for of in self.omissions),
        )

    @property
    def specifications(self) -> tuple[tuple[str, str], ...]:
        """Every importance with every coefficient."""
        return tuple(product(self.others, self.coefficients))

    @property
    def importances(self) -> tuple[str, ...]:
        """Attention and all that it is compared with."""
        return (ATTENTION, *self.others)

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and specification: the coefficient and its chance level, null where undefined."""
        for name in self.importances:
            if name in subject.refused:
                raise UsageError(f"experiment 'multiverse' can't compare {name}: {subject.refused[name]}")
        parts = [self._specified(subject, *each) for each in self.specifications]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _specified(self, subject: Subject, importance: str, coefficient: str) -> pl.DataFrame:
        value, unrelated = self._measured(subject, subject.scores[importance].abs(), coefficient)
        texts = len(subject.examples)
        return pl.DataFrame(
            {
                "example": [e.id for e in subject.examples],
                "n": [len(e) for e in subject.examples],
                "importance": [importance] * texts,
                "coefficient": [coefficient] * texts,
                "value": pl.Series(value.double().numpy()).fill_nan(None),
                "chance": pl.Series(unrelated.double().where(~value.isnan(), torch.nan).numpy()).fill_nan(None),
            }
        )

    def _measured(self, subject: Subject, other: Tensor, coefficient: str) -> tuple[Tensor, Tensor]:
        """The coefficient of every example, and what unrelated rankings would score: [example] each."""
        attention = subject.scores[ATTENTION]
        name, settings = parse(coefficient)
        if name in TOPK:
            ids, size = torch.tensor([e.id for e in subject.examples]), _size(settings["k"], subject)
            unrelated = chance(TOPK[name], attention, other, size, ids, draws=self.draws, seed=self.seed)
            return TOPK[name](attention, other, size), unrelated
        if name == "tau_nonzeros":
            none = attention == 0
            attention, other = (scores.masked_fill(none, torch.nan) for scores in (attention, other))
        table = kendall(attention, other)
        value = table.corrected if name == "tau_corrected" else table.tau
        return value, torch.zeros_like(value)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By specification: its choices, seeds, n, undefined, mean, interval, chance, and the mean above chance."""
        groups = rows.partition_by(KEYS, as_dict=True, maintain_order=True)
        found = [
            dict(zip(KEYS, key, strict=True)) | choices_of(str(key[2])) | _numbers(group)
            for key, group in groups.items()
        ]
        return pl.DataFrame(found, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Which choice moves the result how far, and between what the means of the specifications lie."""
        return {"shares": decompose_spread(rows, choices_of), "range": ranges(self.summary(rows))}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """The specification curves of every task, and the shares of the choices."""
        from exegete.experiments.multiverse.figure import curves, shares

        charts: dict[str, Any] = {}
        for place, part in enumerate(summary.partition_by("task", maintain_order=True)):
            of_task = rows.filter(pl.col("task") == part["task"][0])
            charts["curve" if place == 0 else f"curve_{place + 1}"] = curves(part, _by_seed(of_task))
        return charts | {"shares": shares(decompose_spread(rows, choices_of))}


def _check(coefficient: str) -> None:
    """Refuse a coefficient that there isn't, and a k that is none."""
    name, settings = parse(coefficient)
    if name not in (*OVER_WORDS, *TOPK):
        raise unknown("coefficient of experiment 'multiverse'", name, (*OVER_WORDS, *TOPK))
    asked = {"k"} if name in TOPK else set()
    if set(settings) != asked:
        form = f"write {name}:k=5 or {name}:k=nonzeros" if asked else f"write {name}"
        raise UsageError(f"experiment 'multiverse': '{coefficient}' is no coefficient; {form}")
    k = settings.get("k", SUPPORT)
    if k != SUPPORT and not (k.isdigit() and int(k) > 0):
        raise UsageError(f"experiment 'multiverse': k is a whole number or 'nonzeros', not '{k}'")


def _size(rule: str, subject: Subject) -> Tensor:
    """k for every text: the number of words that have weight, or a fixed one, cut to the length of the text."""
    if rule == SUPPORT:
        return nonzeros(subject.scores[ATTENTION])
    return torch.tensor([min(len(e), int(rule)) for e in subject.examples])


def choices_of(importance: str) -> dict[str, str | None]:
    """What an importance chose; leaving a word out has no gradient to detach.

    >>> choices_of("gradient:norm=l2,detach=true,of=loss")
    {'measure': 'l2', 'detach': 'true', 'of': 'loss'}
    >>> choices_of("leave_one_out:of=logit")
    {'measure': 'leave_one_out', 'detach': None, 'of': 'logit'}
    """
    name, settings = parse(importance)
    return {"measure": settings.get("norm", name), "detach": settings.get("detach"), "of": settings["of"]}


def _numbers(group: pl.DataFrame) -> dict[str, float | int | None]:
    """Numbers of one specification; a coefficient lies in [−1, 1], and so does its interval."""
    values = columns(group, SPECIFICATION).values[0]
    interval = interval_of(values, bound=1.0)
    mean, unrelated = or_none(interval.mean), or_none(group["chance"].mean())
    return {
        "seeds": group["seed"].n_unique(),
        "n": interval.n,
        "undefined": group["value"].null_count(),
        "mean": mean,
        "low": or_none(interval.low),
        "high": or_none(interval.high),
        "chance": unrelated,
        "above": None if mean is None or unrelated is None else _above(mean, unrelated),
    }


def _above(mean: float, unrelated: float) -> float | None:
    """(mean − chance) / (1 − chance): 0 for unrelated rankings, 1 for equal ones; None where chance is 1."""
    return None if unrelated >= CERTAIN else (mean - unrelated) / (1 - unrelated)


def ranges(summary: pl.DataFrame) -> pl.DataFrame:
    """By task and model: the lowest, middle and highest mean, whose they are, and how many lie beyond chance."""
    defined = summary.filter(pl.col("mean").is_not_null()).sort("mean", maintain_order=True)
    said = pl.concat_str("importance", pl.lit(" · "), "coefficient")
    found = defined.group_by("task", "model", maintain_order=True).agg(
        pl.len().alias("specifications"),
        pl.col("mean").first().alias("lowest"),
        said.first().alias("lowest_is"),
        pl.col("mean").median().alias("median"),
        pl.col("mean").last().alias("highest"),
        said.last().alias("highest_is"),
        (pl.col("low") > pl.col("chance")).sum().alias("above_chance"),
        (pl.col("high") < pl.col("chance")).sum().alias("below_chance"),
    )
    order = summary.select("task", "model").unique(maintain_order=True)
    return order.join(found, on=["task", "model"], how="inner", maintain_order="left")


def _by_seed(rows: pl.DataFrame) -> pl.DataFrame:
    """The mean of every specification with every seed."""
    return rows.group_by(*KEYS, "seed", maintain_order=True).agg(pl.col("value").mean().alias("mean")).drop_nulls()
