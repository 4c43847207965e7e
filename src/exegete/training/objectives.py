"""Objectives: what training minimises.

`Likelihood` is the default. An objective that needs the model it is trained beside (an adversary's, say) is a catalogue
entry whose `bound` gives the function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exegete.base.catalogue import Catalogue, Entry
from exegete.models.contract import Predictor, Trace
from exegete.models.ours.translator import gold
from exegete.tasks.batching import Batch
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example, Task
from exegete.tasks.vocabulary import PAD


class Objective(Protocol):
    """What a model computed for a batch, to one number that training makes small: a mean over the batch."""

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """The loss of a batch."""


class BindableObjective(Protocol):
    """The settings of an objective that compares with another model or looks at a task."""

    def bound(self, base: Predictor, task: Task) -> Objective:
        """The objective of a companion of this model on this task."""


OBJECTIVES = Catalogue(
    "objective",
    {
        "adversary": Entry(
            "exegete.training.adversary:Adversary",
            "the base's predictions with other attention (Wiegreffe & Pinter 2019)",
        ),
        "deception": Entry(
            "exegete.training.deception:Deception",
            "the task's labels with attention kept off the words that it needs (Pruthi et al. 2020)",
        ),
    },
)


@dataclass(frozen=True)
class Likelihood:
    """Mean cross-entropy; with one output in [-z/2, z/2] form this is the binary cross-entropy of σ(z).

    Of a translation, over the words of its target and their ends.
    """

    weight: Tensor | None = None  # [class]
    smoothing: float = 0.0  # of the gold distribution, towards the uniform one (Szegedy et al. 2016)

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """−mean log p(gold), weighted by class if asked."""
        if trace.logits.dim() == 2:
            weight = None if self.weight is None else self.weight.to(trace.logits.device)
            return cross_entropy(trace.logits, batch.label, weight=weight, label_smoothing=self.smoothing)
        words = gold(batch).flatten()
        return cross_entropy(trace.logits.flatten(0, 1), words, ignore_index=PAD, label_smoothing=self.smoothing)


def class_weights(examples: Sequence[Example], classes: int) -> Tensor:
    """N / (C · N_c): for two classes the ratio is J&W's pos_weight N_neg / N_pos."""
    count = torch.bincount(torch.from_numpy(column_of(examples, "label")), minlength=classes)
    return len(examples) / (classes * count)
