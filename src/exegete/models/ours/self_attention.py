"""Self-attention: the layers of a Transformer, with every attention open to interventions (Vaswani et al. 2017).

    Attention(Q, K, V) = project(Q Kᵀ / √d) V                                                         (equation 1)

per head of size d; heads side by side through one linear map (section 3.2.2). The projection is any of ours. A weight
outside the mask is 0, so padding changes nothing, and a query without any key to look at (padding itself) gets 0.

A caller that wants to see or rewrite the weights of an attention hands it a hook `at(scores, weights, mask, project)`,
which returns the weights to go on with: this is where a model makes its `Site`. Dropout of weights comes after it.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.projections import Projection

AttentionHook = Callable[[Tensor, Tensor, Tensor, Projection], Tensor]
NormPlace = Literal["pre", "post"]


class KeyValue(NamedTuple):
    """What an attention looks up: a key and a value per place."""

    keys: Tensor  # [batch, head, key, size / heads]
    values: Tensor  # [batch, head, key, size / heads]

    def after(self, earlier: "KeyValue | None") -> "KeyValue":
        """The places of an earlier pair, then these."""
        if earlier is None:
            return self
        return KeyValue(torch.cat([earlier.keys, self.keys], 2), torch.cat([earlier.values, self.values], 2))

    def rows(self, rows: Tensor) -> "KeyValue":
        """Some rows of the batch, in a given order."""
        return KeyValue(self.keys[rows], self.values[rows])


class Past(NamedTuple):
    """What a decoder layer keeps from step to step."""

    own: KeyValue | None  # of the steps so far; None before the first
    source: KeyValue  # of the source, the same for all steps

    def rows(self, rows: Tensor) -> "Past":
        """Some rows of the batch, in a given order: what a beam search goes on with."""
        return Past(None if self.own is None else self.own.rows(rows), self.source.rows(rows))


class Encoding(NamedTuple):
    """What an encoder layer computed."""

    states: Tensor  # [batch, token, size]
    weights: Tensor  # [batch, head, token, token]


class Decoding(NamedTuple):
    """What a decoder layer computed for some steps."""

    states: Tensor  # [batch, step, size]
    own: Tensor  # [batch, head, step, earlier and these steps]: weights over the target
    cross: Tensor  # [batch, head, step, key]: weights over the source
    past: Past  # to hand in with the next steps


def sinusoids(length: int, size: int, device: torch.device | None = None) -> Tensor:
    """Positions: sin(p / 10000^(2i / size)) in even columns 2i, cos in odd ones (section 3.5).

    A model adds them to its embeddings, which it multiplies by √size (section 3.4).
    """  # [length, size]
    place = torch.arange(length, dtype=torch.float64, device=device)[:, None]
    column = torch.arange(size, device=device)
    angle = place / 10_000 ** (2 * (column // 2) / size)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


def among(present: Tensor) -> Tensor:
    """Every present token looks at every present token: mask [batch, 1, query, key] from [batch, token]."""
    return (present[:, :, None] & present[:, None, :])[:, None]


def not_later(steps: int, device: torch.device | None = None) -> Tensor:
    """Every step looks at itself and at earlier ones: mask [1, 1, step, step]."""
    return torch.ones(steps, steps, dtype=torch.bool, device=device).tril()[None, None]


class MultiHead(nn.Module):
    """Scaled dot-product attention with several heads."""

    def __init__(self, size: int, heads: int, project: Projection, dropout: float = 0.0) -> None:
        super().__init__()
        if heads < 1 or size % heads:
            raise UsageError(f"{heads} heads can't share a size of {size}: choose a number of heads that divides it")
        self.heads, self.project = heads, project
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, mask: Tensor, at: AttentionHook | None = None
    ) -> tuple[Tensor, Tensor]:
        """[batch, query, size] and [batch, key, size] to [batch, query, size] and weights [batch, head, query, key].

        The mask [batch, 1, query or 1, key] is True where a query may look; rows of padding queries should be False.
        """
        return self.attend(queries, self.pair(keys), mask, at)

    def pair(self, keys: Tensor) -> KeyValue:
        """Keys and values of some places, to be attended over once or many times."""
        return KeyValue(self._split(self.key(keys)), self._split(self.value(keys)))

    def attend(
        self, queries: Tensor, pair: KeyValue, mask: Tensor, at: AttentionHook | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attention over keys and values that are there already."""
        q = self._split(self.query(queries))  # [batch, head, query, size / heads]
        scores = q @ pair.keys.mT / math.sqrt(q.shape[-1])
        weights = self.project(scores, mask)
        if at is not None:
            weights = at(scores, weights, mask, self.project)
        mixed = self.dropout(weights) @ pair.values
        return self.out(mixed.transpose(1, 2).flatten(2)), weights

    def moved(self, keys: Tensor) -> Tensor:
        """What the weights multiply: W_O W_V x, with one head f(x) of Kobayashi et al. (2020): [batch, key, size].

        With several heads it is what a weight of 1 in all of them would bring.
        """
        values: Tensor = self.value(keys)
        return nn.functional.linear(values, self.out.weight)

    def _split(self, x: Tensor) -> Tensor:
        apart: Tensor = x.unflatten(-1, (self.heads, -1))
        return apart.transpose(1, 2)  # [batch, head, place, size / heads]


class FeedForward(nn.Sequential):
    """Every place on its own: W₂ relu(W₁ x + b₁) + b₂ (equation 2)."""

    def __init__(self, size: int, inner: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Linear(size, inner), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner, size))


class Residual(nn.Module):
    """x + f(x), with a layer norm before f (`pre`, which trains without a warm-up) or after the sum (`post`)."""

    def __init__(self, size: int, dropout: float, norm: NormPlace) -> None:
        super().__init__()
        self.norm, self.first = nn.LayerNorm(size), norm == "pre"
        self.dropout = nn.Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        """What f gets."""
        normed: Tensor = self.norm(x) if self.first else x
        return normed

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """What goes on, from x and f's result y."""
        total = x + self.dropout(y)
        normed: Tensor = total if self.first else self.norm(total)
        return normed


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each in a residual. Layers of norm `pre` end without one: add it if need be."""

    def __init__(
        self, size: int, heads: int, inner: int, project: Projection, dropout: float = 0.0, norm: NormPlace = "pre"
    ) -> None:
        super().__init__()
        self.attention = MultiHead(size, heads, project, dropout)
        self.feed_forward = FeedForward(size, inner, dropout)
        self.around_attention, self.around_feed_forward = (Residual(size, dropout, norm) for _ in range(2))

    def forward(self, states: Tensor, mask: Tensor, at: AttentionHook | None = None) -> Encoding:
        """States [batch, token, size] and mask [batch, 1, token or 1, token] to states and weights."""
        x = self.around_attention.enter(states)
        found, weights = self.attention(x, x, mask, at)
        states = self.around_attention.leave(states, found)
        changed = self.feed_forward(self.around_feed_forward.enter(states))
        return Encoding(self.around_feed_forward.leave(states, changed), weights)

    def moved(self, states: Tensor) -> Tensor:
        """What the weights of this layer multiply, from the states that it is given: [batch, token, size]."""
        return self.attention.moved(self.around_attention.enter(states))


class DecoderLayer(nn.Module):
    """Attention over the target so far, attention over the source, feed-forward, each in a residual.

    All steps at once (training) or one by one (decoding) are the same call: `begin` once per source, then steps with
    the `past` that the steps before left.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        inner: int,
        projects: tuple[Projection, Projection],  # over the target, over the source
        dropout: float = 0.0,
        norm: NormPlace = "pre",
    ) -> None:
        super().__init__()
        self.own, self.cross = (MultiHead(size, heads, project, dropout) for project in projects)
        self.feed_forward = FeedForward(size, inner, dropout)
        self.around_own, self.around_cross, self.around_feed_forward = (Residual(size, dropout, norm) for _ in range(3))

    def begin(self, source: Tensor) -> Past:
        """Before the first step: keys and values of the source [batch, key, size]."""
        return Past(None, self.cross.pair(source))

    def forward(
        self,
        states: Tensor,
        past: Past,
        masks: tuple[Tensor, Tensor],
        at: tuple[AttentionHook | None, AttentionHook | None] = (None, None),
    ) -> Decoding:
        """States [batch, step, size] of the steps after `past`.

        Masks are [batch or 1, 1, step, earlier and these steps] over the target and [batch, 1, step or 1, key] over the
        source; hooks come in the same order.
        """
        x = self.around_own.enter(states)
        pair = self.own.pair(x).after(past.own)
        found, own = self.own.attend(x, pair, masks[0], at[0])
        states = self.around_own.leave(states, found)
        found, cross = self.cross.attend(self.around_cross.enter(states), past.source, masks[1], at[1])
        states = self.around_cross.leave(states, found)
        changed = self.feed_forward(self.around_feed_forward.enter(states))
        return Decoding(self.around_feed_forward.leave(states, changed), own, cross, Past(pair, past.source))
