"""Skill: whether a model does better than a guess. Where it does not, there is nothing to explain.

Accuracy does not say it: with 20 % positives a model that ranks texts well may name the frequent class nearly always.
So classes are asked for the area under the ROC curve, whose chance level is ½ however rare they are. Where all texts
have one class there is no curve, and what counts is how much likelier the model finds the right classes than their
frequency in training does; a translation's words are held against their frequency in the training targets, so.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from exegete.measures.roc import auc_interval
from exegete.measures.statistics import Interval
from exegete.measures.student import one_sided
from exegete.models.capabilities import Writing
from exegete.models.ours.translator import gold
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import PAD
from exegete.training.evaluation import prediction_passes

LEVEL = 0.95
SAID = {
    "auc": "AUC",
    "prior": "log-likelihood above that of the classes' frequencies",
    "unigram": "log-likelihood of a word above that of its frequency",
    "unlabelled": "labels",
}


class Skill(NamedTuple):
    """A number with its interval, and what a guess would have."""

    measure: Literal["auc", "prior", "unigram", "unlabelled"]
    value: float | None
    low: float | None
    high: float | None
    chance: float
    n: int

    @property
    def is_guess(self) -> bool:
        """Whether it is not surely above chance; without labels nobody knows."""
        return self.measure != "unlabelled" and (self.low is None or not self.low > self.chance)

    @property
    def said(self) -> str:
        """The number, as people read it."""
        if self.value is None or self.low is None or self.high is None:
            return f"no {SAID[self.measure]}"
        return f"{SAID[self.measure]} {self.value:.3f} [{self.low:.3f}, {self.high:.3f}], by chance {self.chance:g}"

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "Skill":
        """As a run kept it."""
        return cls(**{name: kept[name] for name in cls._fields})


def skill_of_classes(probabilities: Tensor, label: Tensor, train: Sequence[Example]) -> Skill:
    """Of probabilities [example, class] and right classes; the prior is that of the training texts."""
    area = auc_interval(probabilities, label, LEVEL)
    if area.n:
        return _skill("auc", area, 0.5)
    count = torch.bincount(torch.from_numpy(column_of(train, "label")), minlength=probabilities.shape[-1])
    gain = probabilities.double().log() - _log_shares(count)
    return _skill("prior", _mean(gain.gather(-1, label[:, None])[:, 0]), 0.0)


def skill_of_translations(model: Writing, examples: Sequence[Example], train: Sequence[Example]) -> Skill:
    """Of the words of targets, each after the right ones: the mean over sentences of the mean over words."""
    count = torch.zeros(len(model.words), dtype=torch.long, device=model.device)
    for members in prediction_passes(model, train):
        words = gold(model.collate([train[i] for i in members]))
        count += torch.bincount(words[words != PAD], minlength=len(count))
    found, by_frequency = torch.full((len(examples),), math.nan, dtype=torch.float64), _log_shares(count)
    with torch.no_grad():
        for members in prediction_passes(model, examples):
            batch = model.collate([examples[i] for i in members])
            words, there = gold(batch), gold(batch) != PAD
            likely = model.logits(batch).double().log_softmax(-1).gather(-1, words[..., None])[..., 0]
            gain = (likely - by_frequency[words]).masked_fill(~there, 0.0)
            found[members] = (gain.sum(-1) / there.sum(-1)).cpu()
    return _skill("unigram", _mean(found), 0.0)


def _log_shares(count: Tensor) -> Tensor:
    """Of classes or words, each counted once more than it was seen."""
    return ((count + 1) / (count + 1).sum()).double().log()


def _mean(gain: Tensor) -> Interval:
    return one_sided(gain[None], (1 - LEVEL) / 2, math.inf)


def _skill(measure: Literal["auc", "prior", "unigram"], found: Interval, chance: float) -> Skill:
    value, low, high = (each if math.isfinite(each) else None for each in (found.mean, found.low, found.high))
    return Skill(measure, value, low, high, chance, found.n)
