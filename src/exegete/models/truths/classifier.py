"""A hand-set classifier of synthetic texts whose every number is drawn, so that what its words do can be computed.

A word has a score z, a value v and, if it modifies the word after it, a strength κ. With v_{n+1} = 0,

    u_t = v_t + κ_t v_{t+1},    a_t = z_t + context · |κ_t v_{t+1}|

`depth` times u_t becomes (1 − mix) u_t + mix (u_{t−1} + u_{t+1}) / 2, with 0 beyond the text: states that know of their
neighbours. `shift` moves u and a by so many places: key t then stands for another word. Then

    x = gain · (read · Σ_t α_t u_t + (1 − read) · mean_t u_t) + bias,    z = ceiling · tanh(x / ceiling)

where α is the softmax of a, or, with `room`, its gates with a null key (exegete.models.truths.ladder). With `special`
the start symbol is a key of the softmax, too: it has this score and the value 0. Without a ceiling z = x. The logits
are [−z/2, z/2]. With read = 1 the prediction hangs on what attention pools and on nothing else; with read = 0 on the
mean, whatever the weights are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.classifier import SITE, own_places
from exegete.models.ours.module import KeptSites, Model
from exegete.models.projections import Projection, Softmax
from exegete.models.truths.ladder import NULL, NullKey
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import START, Vocabulary

LABELS = ("against", "for")


@dataclass(frozen=True)
class Wiring:
    """What a hand-set model does with the scores and values of its words."""

    read: float = 1.0  # how much of the logit goes through attention
    gain: float = 1.0
    bias: float = 0.0
    context: float = 0.0  # what a word that modifies another adds to its score
    mix: float = 0.0
    depth: int = 0
    shift: int = 0
    ceiling: float = 0.0  # of the logit; none
    room: int = 0  # words that may be open at once, with a null key; none: softmax
    special: float | None = None  # the score of the start symbol beside the words, with softmax; none: it has no weight

    def __post_init__(self) -> None:
        if self.room and self.special is not None:
            raise ValueError("the start symbol is a null key or a key of the softmax, not both")

    @property
    def first(self) -> bool:
        """Whether the start symbol is a key, so that texts must begin with it."""
        return bool(self.room) or self.special is not None


class HandSet(Model):
    """Its table of embeddings has three columns, z, v and κ, in float64: nothing is trained."""

    def __init__(self, spec: str, vocabulary: Vocabulary, table: Tensor, wiring: Wiring) -> None:
        super().__init__(spec, vocabulary, LABELS, table.shape[1])
        self.wiring = wiring
        self.embedding = nn.Embedding.from_pretrained(table.double(), freeze=True)
        self.project: Projection = NullKey(wiring.room) if wiring.room else Softmax()
        self.requires_grad_(False)

    @property
    def sites(self) -> tuple[str, ...]:
        """The one attention."""
        return (SITE,)

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States that attention pools, as far as it is read; the rest of the logit is the `query`."""
        embedded = self.embed(batch) if embedded is None else embedded
        wiring, words = self.wiring, batch.words
        score, value, strength = embedded.masked_fill(~words[..., None], 0.0).unbind(-1)
        modified = strength * shift_right(value, -1)
        states, scores = (value + modified).where(words, 0.0), score + wiring.context * modified.abs()
        for _ in range(wiring.depth):
            around = (shift_right(states, 1) + shift_right(states, -1)) / 2
            states = ((1 - wiring.mix) * states + wiring.mix * around).where(words, 0.0)
        states, scores = (shift_right(x, wiring.shift).where(words, 0.0) for x in (states, scores))
        mean = states.sum(-1, keepdim=True) / words.sum(-1, keepdim=True).clamp(min=1)
        rest = wiring.gain * (1 - wiring.read) * mean + wiring.bias
        start = (batch.tokens == START) & ~words if wiring.first else torch.zeros_like(words)
        of_start = NULL if wiring.special is None else wiring.special
        pooled = wiring.gain * wiring.read * states[..., None]
        return Encoded(pooled, scores.masked_fill(start, of_start), words | start, None, rest)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Logits of every draw of weights."""
        assert encoded.query is not None
        x = weights.to(encoded.states.dtype) @ encoded.states + encoded.query[:, None]  # [batch, draw, 1]
        ceiling = self.wiring.ceiling
        z = ceiling * (x / ceiling).tanh() if ceiling else x
        return torch.cat([-z / 2, z / 2], -1)

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Scores [..., key] to weights."""
        weights: Tensor = self.project(scores, mask)
        return weights

    def null_keys(self, encoded: Encoded) -> Tensor | None:
        """The start symbol, where there is room."""
        return encoded.scores == NULL if self.wiring.room else None

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """None: nothing is trained."""
        yield from ()

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:  # noqa: ARG002
        encoded = self.encode(batch, embedded=embedded)
        scores, mask = encoded.scores[:, None, None], encoded.mask[:, None, None]  # [batch, 1, 1, key]
        weights = self.weigh(scores, mask)
        if intervene is not None:
            weights = intervene(Site(SITE, scores, weights, mask, self.project, batch))
        logits = self.decode(encoded, weights[:, 0])[:, 0]
        return Trace(logits, {SITE: weights}, {SITE: encoded.states}, {SITE: own_places(batch)})


def shift_right(x: Tensor, by: int) -> Tensor:
    """Every number so many places to the right, 0 where none comes from: [..., place].

    >>> shift_right(torch.tensor([1, 2, 3]), 1).tolist(), shift_right(torch.tensor([1, 2, 3]), -1).tolist()
    ([0, 1, 2], [2, 3, 0])
    """
    if by == 0:
        return x
    gap = x.new_zeros(*x.shape[:-1], min(abs(by), x.shape[-1]))
    return torch.cat([gap, x[..., :-by]] if by > 0 else [x[..., -by:], gap], -1)
