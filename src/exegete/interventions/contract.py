"""The contract of our interventions: attention rewritten at one site or at all of them, never outside the mask.

An intervention is a callable `(site) -> weights`; the same object works at inference and inside training. Whatever is
random in one is keyed by (seed, example, site, draw, head, query, key), queries being counted among the real queries
and keys among the real keys of their row: a draw depends neither on the batch nor on padding.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from exegete.base.errors import unknown
from exegete.base.noise import keyed_integers, stable_seed, uniform
from exegete.base.places import places
from exegete.models.contract import Intervention, Predictor, Site

EVERY = "every"


@dataclass(frozen=True)
class Rewrite(ABC):
    """An intervention at one site, or at every one; weights of other sites stay as they are."""

    site: str = EVERY

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, rewritten if it is meant."""
        return self.rewritten(site) if self.site in (EVERY, site.name) else site.weights

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
    name = getattr(intervention, "site", EVERY)
    if name != EVERY and name not in model.sites:
        raise unknown("site", name, model.sites)


@runtime_checkable
class Renewable(Protocol):
    """An intervention that draws anew in every epoch of a training."""

    def renewed(self, epoch: int) -> Self:
        """The same with other draws; with the same ones where they are to be fixed."""


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
    """The same as int64 hashes: for an order, they need not be made numbers."""
    return keyed_integers(seed, *_coordinates(site, draw))


def _coordinates(site: Site, draw: int) -> tuple[Tensor | int, ...]:
    """What a draw is for. The key comes last: all that is hashed before it is small."""
    mask = mask_of(site)  # [batch, head, query, key]
    ids, head = site.batch.ids.view(-1, 1, 1, 1), places(mask, 1).view(1, -1, 1, 1)
    real = mask.any(-1, keepdim=True)  # queries too are counted without the padding before them
    query = (real.long().cumsum(-2) - 1).clamp(min=0) + site.first_query
    return ids, stable_seed(site.name), draw, head, query, counted(mask)


def mask_of(site: Site) -> Tensor:
    """True on real keys of real queries, in the shape of the weights: [batch, head, query, key]."""
    return site.mask.expand_as(site.weights)


def counted(mask: Tensor) -> Tensor:
    """The number of each key among the real keys of its row, from 1: padding before or between them changes nothing."""
    return mask.long().cumsum(-1)  # [..., key]


def scaled(parts: Tensor, mask: Tensor) -> Tensor:
    """Non-negative parts that sum to 1 over the mask; a row in which nothing is left is all 0, never NaN."""
    kept = parts.masked_fill(~mask, 0.0)
    total = kept.sum(-1, keepdim=True)
    return kept / torch.where(total > 0, total, 1.0)  # [..., key]
