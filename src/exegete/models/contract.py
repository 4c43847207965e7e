"""The contract of a model: attention has one shape everywhere, [batch, head, query, key].

So a pooling layer (1 head, 1 query), a translator (1 head, a query per output step) and a BERT layer (12 heads, a
query per token) take the same interventions and give the same tables.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.models.projections import Projection
from exegete.tasks.batching import Batch


class Site(NamedTuple):
    """What an intervention sees: everything that one attention computes."""

    name: str
    scores: Tensor  # [batch, head, query, key], before projection
    weights: Tensor  # [batch, head, query, key]; rows of real queries sum to 1 over real keys (not `gates`), else 0
    mask: Tensor  # broadcastable to the same, True on real keys of real queries
    project: Projection  # so that "mask some scores and project again" is possible
    batch: Batch
    first_query: int = 0  # the step, where a decoder runs one query at a time


Intervention = Callable[[Site], Tensor]  # a site's weights, rewritten; never any weight outside the mask


class Trace(NamedTuple):
    """What a model computed for a batch."""

    logits: Tensor  # [batch, class]; of a translation [batch, step, word]
    attention: dict[str, Tensor]  # by site: [batch, head, query, key]
    states: dict[str, Tensor]  # by site: [batch, key, size], what the site attends over
    owner: dict[str, Tensor]  # by site: [batch, token] -> the key that a token belongs to, or -1

    def word_weights(self, site: str, batch: Batch) -> Tensor | None:
        """The weights of the explained words at a site, [batch, token], the mean over heads and queries; 0 elsewhere.

        None where its keys are not these words one by one: sentences, or the words of another text.
        """
        places = torch.arange(batch.tokens.shape[1])
        if not torch.equal(self.owner[site], torch.where(batch.words, places, -1)):
            return None
        weights = self.attention[site].mean((1, 2))  # [batch, key]
        return pad(weights, (0, batch.tokens.shape[1] - weights.shape[1])).where(batch.words, 0.0)


class Encoded(NamedTuple):
    """A batch, encoded once, to be decoded under any weights."""

    states: Tensor  # [batch, key, size]
    scores: Tensor  # [batch, key], before projection
    mask: Tensor  # [batch, key], True on real keys
    values: Tensor | None  # [batch, key, class]: W h_t, if the decoder is linear
    query: Tensor | None = None  # [batch, size]: what else the decoder reads, such as the state of a question
    candidates: Tensor | None = None  # [batch, candidate]: as in the batch

    def to(self, dtype: torch.dtype) -> "Encoded":
        """In another precision: decoders compute in that of what they decode."""
        values, query = (None if x is None else x.to(dtype) for x in (self.values, self.query))
        return self._replace(states=self.states.to(dtype), scores=self.scores.to(dtype), values=values, query=query)

    def rows(self, which: Tensor) -> "Encoded":
        """Some of its examples."""
        return Encoded(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]


@runtime_checkable
class AttentionModel(Protocol):
    """Anything that predicts through attention."""

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the places where attention weights are computed."""

    def embed(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""

    def trace(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Trace:
        """Predict, with everything that importances and measures need."""


@runtime_checkable
class PoolingModel(AttentionModel, Protocol):
    """A model whose last attention pools the states for a decoder."""

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States and scores, once."""

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Weights [batch, draw, key] to logits [batch, draw, class], many times."""
