"""The contract of our interventions: attention rewritten at some sites or at all of them, never outside the mask.

An intervention is a callable `(site) -> weights`; the same object works at inference and inside training. Whatever is
random in one is keyed by (seed, example, site, draw, head, query, key), queries being counted among the real queries
and keys among the real keys of their row: a draw depends neither on the batch nor on padding.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from exegete.base.noise import keyed_integers, stable_seed, uniform
from exegete.base.places import places
from exegete.interventions.sites import EVERY, choose_sites, in_heads, meant
from exegete.models.contract import Intervention, Predictor, Site

WHOLE = 1e-4  # a sum of weights that is nearer to 1 than this is 1, and rounding


@dataclass(frozen=True)
class Rewrite(ABC):
    """An intervention at some sites, or at every one, in one head or in all; all other weights stay as they are."""

    site: str = EVERY  # a site, a group of layers or a window of them: see `where`
    head: int | None = field(default=None, kw_only=True)  # of each of these sites, from 0; None: all

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, rewritten if it is meant."""
        if not meant(self.site, site.name):
            return site.weights
        rewritten = self.rewritten(site)
        return rewritten if self.head is None else in_heads(rewritten, site, (self.head,))

    @abstractmethod
    def rewritten(self, site: Site) -> Tensor:
        """New weights, [batch, head, query, key]: 0 outside the mask."""


@dataclass(frozen=True)
class Drawn(Rewrite):
    """An intervention with a part left to chance."""

    seed: int = 0
    fresh: bool = True  # in training: drawn anew in every epoch; otherwise one draw per example, for ever

    def renewed(self, epoch: int) -> Self:
        """Other draws, where they are to be fresh; at inference, before any epoch, they are those of the seed."""
        return replace(self, seed=stable_seed("epoch", self.seed, epoch)) if self.fresh else self


def check_site(intervention: object, model: Predictor) -> None:
    """Refuse an intervention at a site that the model doesn't have."""
    where = getattr(intervention, "site", EVERY)
    if where != EVERY:
        choose_sites(where, model.sites)


@runtime_checkable
class Renewable(Protocol):
    """An intervention that draws anew in every epoch of a training."""

    def renewed(self, epoch: int) -> Self:
        """The intervention with other draws; with those it has where they are to be fixed."""


def renewed(intervention: Intervention | None, epoch: int) -> Intervention | None:
    """An intervention for one epoch of a training."""
    return intervention.renewed(epoch) if isinstance(intervention, Renewable) else intervention


@runtime_checkable
class Bindable(Protocol):
    """An intervention that must know the model whose weights it rewrites."""

    def bound(self, model: Predictor) -> Intervention:
        """The intervention for a model."""


def bound(intervention: Intervention, model: Predictor) -> Intervention:
    """An intervention that is ready for a model; one at a site that the model doesn't have is refused."""
    check_site(intervention, model)
    return intervention.bound(model) if isinstance(intervention, Bindable) else intervention


def noise(site: Site, seed: int, draw: int = 0) -> Tensor:
    """Keyed uniform numbers in (0, 1) for every weight of a site, float64 [batch, head, query, key]."""
    return uniform(seed, *_coordinates(site, draw))


def integers(site: Site, seed: int, draw: int = 0) -> Tensor:
    """Keyed int64 hashes for every weight of a site: for an order, they need not be made numbers."""
    return keyed_integers(seed, *_coordinates(site, draw))


def _coordinates(site: Site, draw: int) -> tuple[Tensor | int, ...]:
    """What a draw is for. The key comes last: all that is hashed before it is small."""
    mask = mask_of(site)  # [batch, head, query, key]
    ids, head = site.batch.ids.view(-1, 1, 1, 1), places(mask, 1).view(1, -1, 1, 1)
    real = mask.any(-1, keepdim=True)  # queries too are counted without the padding before them
    query = (real.long().cumsum(-2) - 1).clamp(min=0) + site.first_query
    return ids, stable_seed(site.name), draw, head, query, number_keys(mask)


def mask_of(site: Site) -> Tensor:
    """True on real keys of real queries, in the shape of the weights: [batch, head, query, key]."""
    return site.mask.expand_as(site.weights)


def number_keys(mask: Tensor) -> Tensor:
    """The number of each key among the real keys of its row, from 1: padding before or between them changes nothing."""
    return mask.long().cumsum(-1)  # [..., key]


def total_of(site: Site) -> Tensor:
    """What the rows of a site sum to, [batch, head, query, 1]: exactly 1, but for gates and beside sinks.

    A sink takes weight and gives nothing: what its row lacks is a gate of the model's own, no weight of any word.
    A constant, for gradients: weights that are given teach no query and no key.
    """
    total = site.weights.detach().sum(-1, keepdim=True)
    return torch.where((total - 1).abs() < WHOLE, 1.0, total)


def scaled(parts: Tensor, mask: Tensor) -> Tensor:
    """Non-negative parts that sum to 1 over the mask; a row in which nothing is left is all 0, never NaN."""
    kept = parts.masked_fill(~mask, 0.0)
    total = kept.sum(-1, keepdim=True)
    return kept / torch.where(total > 0, total, 1.0)  # [..., key]
