"""Pooling: texts encoded once, to be decoded under any weights.

Everything that changes only the weights after encoding starts here. With a linear decoder logits = Σ_t α_t (W h_t) + b,
and `values` = W h_t is all that is needed of a text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.contract import AttentionModel, Encoded
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.next_word import NextWord
from exegete.models.own.classifier import Own
from exegete.tasks.batching import batches_of_one_length, collate
from exegete.tasks.example import Example

SIZE, BUDGET = 512, 32_768  # texts and words that are encoded together
DRAWS, LOGITS = 100, 12_500_000  # weightings that a caller decodes together, and the logits they may take: 100 MB


class Pooled(NamedTuple):
    """Some texts after encoding: what is left of the model is its last attention and its decoder."""

    members: list[int]  # places among the examples that were given
    ids: Tensor  # [batch]
    model: Classifier
    encoded: Encoded
    weights: Tensor  # [batch, key], float64: the model's own
    logits: Tensor  # [batch, class], float64, under these weights

    @property
    def mask(self) -> Tensor:
        """[batch, key], True on real keys."""
        return self.encoded.mask

    def decode(self, weights: Tensor) -> Tensor:
        """Logits [batch, draw, class] in float64 under weights [batch, draw, key]."""
        with torch.no_grad():
            return self.model.decode(self.encoded, weights)


def unpooled(model: AttentionModel) -> str | None:
    """Why a model's last attention can't be rewritten after encoding; None if it can."""
    if isinstance(model, NextWord | Own):
        return model.unpooled()
    if isinstance(model, Classifier) and model.sites:
        return None
    return f"it rewrites the weights of a last attention that pools states, and {type(model).__name__} has none"


def pooled(model: AttentionModel, examples: Sequence[Example]) -> Iterator[Pooled]:
    """Every example, in batches, encoded once; in float64 from there on."""
    if not isinstance(model, Classifier) or (reason := unpooled(model)) is not None:
        raise UsageError(unpooled(model) or reason)
    few = max(1, min(SIZE, LOGITS // (DRAWS * len(model.labels))))  # where classes are the words of a vocabulary
    for members in batches_of_one_length(examples, few, BUDGET):
        batch = collate([examples[i] for i in members], model.vocabulary)
        with torch.no_grad():
            encoded = model.encode(batch).to(torch.float64)  # small differences are what is measured
            weights = model.project(encoded.scores, encoded.mask)
            logits = model.decode(encoded, weights[:, None])[:, 0]
        yield Pooled(members, batch.ids, model, encoded, weights, logits)
