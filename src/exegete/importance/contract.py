"""The contract of an importance: one score per word of a text, for one prediction."""

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from exegete.models.contract import AttentionModel
from exegete.tasks.batching import Batch

Quantity = Literal["logit", "probability", "loss"]


class Target(NamedTuple):
    """What is explained: which class, and which function of its logit."""

    label: Tensor  # [batch]
    step: Tensor | None = None  # which output word, for translation
    of: Quantity = "logit"


class Scores(NamedTuple):
    """What an importance returns."""

    values: Tensor  # [batch, token], NaN on padding and outside the explained texts
    signed: bool  # saliency (signed) or sensitivity
    target: Target
    error: Tensor | None = None  # [batch]: completeness or conservation error, where the method has one


class Importance(Protocol):
    """A way to score words. `target=None` explains the predicted class, and the result says so."""

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """Score the words of every text of a batch."""


def predicted(logits: Tensor, of: Quantity = "logit") -> Target:
    """The class that a model predicts."""
    return Target(logits.detach().argmax(-1), of=of)


def explained(logits: Tensor, target: Target) -> Tensor:
    """f_c(x), the number that a target stands for: logit, probability, or loss −log p of its class."""  # [batch]
    if target.of == "logit":
        return logits.gather(-1, target.label[:, None])[:, 0]
    log_p = logits.log_softmax(-1).gather(-1, target.label[:, None])[:, 0]
    return log_p.exp() if target.of == "probability" else -log_p


def on_words(values: Tensor, batch: Batch) -> Tensor:
    """Values with NaN wherever no word is."""
    return torch.where(batch.words, values, torch.nan)
