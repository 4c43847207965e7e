"""Objectives: what training minimises."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.models.contract import Trace
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example


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
