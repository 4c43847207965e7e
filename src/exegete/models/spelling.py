"""Spelling: words outside, pieces inside. What a model of pieces needs so that all others see words.

A batch has a place per word (and per wrapper), whose pieces a model reads side by side. What it tells is about words:

- *Embedding of a word*: those of its pieces side by side, filled up with zeros, [batch, word, P · size]. So gradient ×
  input and integrated gradients add up over pieces by themselves, and zeroing takes the whole word.
- *A site* has words as keys, each with the log of the summed exponentials of its pieces' scores: the softmax over words
  is then the sum of the pieces' weights. Queries stay pieces; `Site.query_owner` says whose they are. Rewritten weights
  of words go back to their pieces in the old shares within the word, in equal ones where the word had no weight.
- *Weights in a trace*: the sum over a word's key pieces, the mean over its query pieces (Clark et al. 2019, section 2);
  of the word whose first or last piece is what predicts, the row of that piece.

A word may have no piece at all (a soft hyphen): it is no key, its state is 0, and its row of weights is 0.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.models.contract import Intervention, Placed, Query, Readout, Site
from exegete.models.projections import Projection
from exegete.tasks.batching import Batch


class Grid(NamedTuple):
    """The pieces of every word of a batch, from the left."""

    ids: Tensor  # [batch, word, P]
    there: Tensor  # [batch, word, P]: False beyond the last piece of a word, and on padding

    def beside(self, vectors: Tensor) -> Tensor:
        """Vectors of pieces [batch, word, P, size] as those of words, side by side: [batch, word, P · size]."""
        return (vectors * self.there[..., None]).flatten(2)


class SpelledRows(NamedTuple):
    """The pieces of every text in one row, without gaps, padded on the right."""

    ids: Tensor  # [batch, piece]
    real: Tensor  # [batch, piece]
    word: Tensor  # [batch, piece]: the place of the word that it belongs to, -1 on padding
    within: Tensor  # [batch, piece]: which piece of its word, from 0
    member: Tensor  # [batch, piece, word]: 1.0 where a piece belongs to a word

    @property
    def shares(self) -> Tensor:
        """Which pieces a word has, as 1 / n where it has n: for means over the pieces of a word."""
        return self.member / self.member.sum(1, keepdim=True).clamp(min=1)

    def rows(self, which: Tensor) -> "SpelledRows":
        """Of some texts."""
        return SpelledRows(*(column[which] for column in self))

    def at(self, place: Tensor) -> "SpelledRows":
        """One piece of every text, [batch], alone."""
        return SpelledRows(*(column[places(column, 0), place][:, None] for column in self))

    def vectors(self, embedded: Tensor, size: int) -> Tensor:
        """Vectors of pieces [batch, piece, size] from those of words, of this batch or of one with longer words."""
        flat = embedded.unflatten(-1, (-1, size))  # [batch, word, P, size]
        place = (self.word.clamp(min=0) * flat.shape[2] + self.within)[..., None].expand(-1, -1, size)
        vectors: Tensor = flat.flatten(1, 2).gather(1, place) * self.real[..., None]
        return vectors

    def states_of_words(self, states: Tensor) -> Tensor:
        """The mean over the pieces of a word: [batch, piece, size] to [batch, word, size]."""
        return self.shares.mT.to(states.dtype) @ states

    def weights_of_words(self, weights: Tensor, query: Query = "every") -> Tensor:
        """[batch, head, piece, piece] to [batch, head, word, word]: sums over keys, means over queries.

        Where the first or the last piece alone is what a prediction is read from, the row of its word is this piece's.
        """
        shares = self.shares
        if query in ("first", "last"):
            text, place = places(self.real, 0), Readout((), query).place(self.real)
            shares = shares.clone()
            shares[text, :, self.word[text, place].clamp(min=0)] = 0.0
            shares[text, place, self.word[text, place].clamp(min=0)] = self.real.any(-1).to(shares.dtype)
        return shares.mT[:, None].to(weights.dtype) @ self.summed(weights)

    def summed(self, values: Tensor) -> Tensor:
        """Summed over the key pieces of a word: [batch, head, query, piece] to [batch, head, query, word].

        Heads and queries are one axis meanwhile: else torch writes down who belongs to whom once for every head.
        """
        flat = values.expand(len(self.member), *values.shape[1:]).flatten(1, 2)
        found: Tensor = (flat @ self.member.to(values.dtype)).unflatten(1, values.shape[1:3])
        return found

    def given(self, values: Tensor) -> Tensor:
        """Every key piece gets what its word has: [batch, head, query, word] to [batch, head, query, piece]."""
        return values.gather(-1, self._index(values))

    def _index(self, like: Tensor) -> Tensor:
        return self.word.clamp(min=0)[:, None, None].expand(*like.shape[:3], -1)

    def log_sum_exp(self, scores: Tensor, mask: Tensor) -> Tensor:
        """log Σ exp over the key pieces of a word that a query may look at; 0 where there is none."""
        inside = scores.masked_fill(~mask, -torch.inf)
        empty = scores.new_full((*scores.shape[:3], self.member.shape[-1]), -torch.inf)
        highest = empty.scatter_reduce(-1, self._index(scores), inside.detach(), "amax")
        any_piece = highest.isfinite()
        shift = highest.where(any_piece, 0.0)
        total = self.summed((inside - self.given(shift)).exp())
        return (total.where(any_piece, 1.0).log() + shift).where(any_piece, 0.0)


def spell_batch(batch: Batch, spell: Callable[[int], Sequence[int]]) -> Grid:
    """The pieces of all words of a batch, from those of every row."""
    rows, at = batch.tokens.unique(return_inverse=True)
    pieces = [spell(row) for row in rows.tolist()]
    width = max(1, *map(len, pieces))
    ids = torch.tensor([[*own, *[0] * (width - len(own))] for own in pieces], device=at.device)  # [row, P]
    counts = torch.tensor([len(own) for own in pieces], device=at.device)
    there = torch.arange(width, device=at.device) < counts[at][..., None]
    return Grid(ids[at], there & batch.present[..., None])


def pieces_in_a_row(grid: Grid) -> SpelledRows:
    """All pieces of a text in one row; a batch without any piece has one place of padding."""
    width, flat = grid.ids.shape[2], grid.there.flatten(1)  # [batch, word · P]
    longest = max(1, int(flat.sum(-1).max()))
    order = flat.byte().argsort(dim=-1, descending=True, stable=True)[:, :longest]  # [batch, piece]: place of word · P
    real = flat.gather(-1, order)
    ids = grid.ids.flatten(1).gather(-1, order).where(real, 0)
    word = torch.where(real, order // width, -1)
    member = word[..., None] == places(grid.ids, 1)
    return SpelledRows(ids, real, word, torch.where(real, order % width, 0), member.to(torch.get_default_dtype()))


def rewriting(
    name: str, batch: Batch, pieces: SpelledRows, intervene: Intervention, queries: Tensor | None = None
) -> Callable[..., Tensor] | None:
    """The hook of an attention over pieces: an intervention sees words, and what it gives goes back to pieces.

    The words of its queries, [batch, query], are those of all pieces, unless given. None where it acts elsewhere.

    An intervention that gives back the very same tensor leaves the site as it was, to the last bit.
    """

    if isinstance(intervene, Placed) and not intervene.acts_at(name):
        return None

    def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
        site = site_on_words(Site(name, scores, weights, mask, project, batch), pieces, queries)
        rewritten = intervene(site)
        return weights if rewritten is site.weights else _on_pieces(rewritten, site.weights, weights, mask, pieces)

    return hook


def site_on_words(site: Site, pieces: SpelledRows, queries: Tensor | None = None) -> Site:
    """A site over pieces with words as its keys."""
    mask = site.mask.expand_as(site.scores)
    return site._replace(
        scores=pieces.log_sum_exp(site.scores, mask),
        weights=pieces.summed(site.weights),
        mask=pieces.summed(site.mask.to(site.weights.dtype)) > 0,
        query_owner=pieces.word if queries is None else queries,
    )


def _on_pieces(rewritten: Tensor, before: Tensor, weights: Tensor, mask: Tensor, pieces: SpelledRows) -> Tensor:
    """Weights of words on their pieces. Where they are constants, so are the shares: nothing is learnt through them."""
    old, counts = pieces.given(before), pieces.given(pieces.summed(mask.expand_as(weights).to(weights.dtype)))
    shares = torch.where(old > 0, weights / old.where(old > 0, 1.0), 1 / counts.clamp(min=1))
    return (pieces.given(rewritten) * (shares if rewritten.requires_grad else shares.detach())).masked_fill(~mask, 0.0)
