"""Objectives: what training minimises.

`Likelihood` is the default. An objective that needs the model it is trained beside (an adversary's, say) is a catalogue
entry whose `bound` gives the function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from exegete.base.names import Catalogue, Entry
from exegete.models.classifier import Classifier
from exegete.models.contract import Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task


class Objective(Protocol):
    """What a model computed for a batch, to one number that training makes small: a mean over the batch."""

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """The loss of a batch."""


class Bindable(Protocol):
    """The settings of an objective that compares with another model or looks at a task."""

    def bound(self, base: Classifier, task: Task) -> Objective:
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
    """Mean cross-entropy; with one output in [-z/2, z/2] form this is the binary cross-entropy of σ(z)."""

    weight: Tensor | None = None  # [class]

    def __call__(self, trace: Trace, batch: Batch) -> Tensor:
        """−mean log p(gold), weighted by class if asked."""
        return torch.nn.functional.cross_entropy(trace.logits, batch.label, weight=self.weight)


def class_weights(examples: Sequence[Example], classes: int) -> Tensor:
    """N / (C · N_c): for two classes the ratio is J&W's pos_weight N_neg / N_pos."""
    count = torch.bincount(torch.tensor([e.label for e in examples]), minlength=classes)
    return len(examples) / (classes * count)
