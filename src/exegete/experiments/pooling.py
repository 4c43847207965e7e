"""Pooling: texts encoded once, to be decoded under any weights.

Everything that changes only the weights after encoding starts here. With a linear decoder logits = Σ_t α_t (W h_t) + b,
and `values` = W h_t is all that is needed of a text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.classifier import Classifier
from exegete.models.contract import AttentionModel, Encoded
from exegete.tasks.batching import batches_of_one_length, collate
from exegete.tasks.example import Example


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
    if isinstance(model, Classifier) and model.sites:
        return None
    return f"it rewrites the weights of a last attention that pools states, and {type(model).__name__} has none"


def pooled(model: AttentionModel, examples: Sequence[Example]) -> Iterator[Pooled]:
    """Every example, in batches, encoded once; in float64 from there on."""
    if not isinstance(model, Classifier) or (reason := unpooled(model)) is not None:
        raise UsageError(unpooled(model) or reason)
    for members in batches_of_one_length(examples, size=512, budget=32_768):
        batch = collate([examples[i] for i in members], model.vocabulary)
        with torch.no_grad():
            encoded = _double(model.encode(batch))
            weights = model.project(encoded.scores, encoded.mask)
            logits = model.decode(encoded, weights[:, None])[:, 0]
        yield Pooled(members, batch.ids, model, encoded, weights, logits)


def _double(encoded: Encoded) -> Encoded:
    """In float64: small differences between predictions are what is measured."""
    values = None if encoded.values is None else encoded.values.double()
    return encoded._replace(states=encoded.states.double(), scores=encoded.scores.double(), values=values)
