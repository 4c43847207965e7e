"""Remove: some words get no weight, the others share it (Serrano & Smith 2019, section 3)."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.base.noise import stable_seed
from exegete.base.places import places
from exegete.base.ties import levels
from exegete.interventions.contract import Rewrite, mask_of, noise, scaled, total_of
from exegete.models.contract import Site

Which = Literal["top", "bottom", "random"]
Rescaling = Literal["renormalise", "project"]


@dataclass(frozen=True)
class Remove(Rewrite):
    """The highest, the lowest or random weights of every row set to 0.

    `renormalise`: the others are scaled to the row's own sum, which is 1 but for gates and sinks. `project`: the scores
    of those that go are masked and the others projected again; the same for softmax, not for sparse projections. A row
    from which all weight goes is all 0: then the decoder's bias decides.
    """

    which: Which = "top"
    count: int = 1
    share: float | None = None  # of a row's real keys, rounded up, instead of a count
    how: Rescaling = "renormalise"
    seed: int = 0  # of random ones

    def __post_init__(self) -> None:
        check_size("remove", self.count, self.share)
        for name, known in (("which", Which), ("how", Rescaling)):
            if getattr(self, name) not in get_args(known):
                raise unknown(f"{name} of intervention 'remove'", getattr(self, name), get_args(known))

    def rewritten(self, site: Site) -> Tensor:
        """The row without the chosen keys."""
        mask = mask_of(site)
        gone = self._rank(site, mask) < removal_sizes(mask, self.count, self.share)
        if self.how == "project":
            weights: Tensor = site.project(site.scores, mask & ~gone)
            return weights
        return without(site.weights, mask, gone) * total_of(site)

    def _rank(self, site: Site, mask: Tensor) -> Tensor:
        if self.which == "random":
            return rank_keys(noise(site, stable_seed("remove", self.seed)), mask)
        level = heights(site.weights, mask)
        return rank_keys(level if self.which == "top" else -level, mask)


def without(weights: Tensor, mask: Tensor, gone: Tensor) -> Tensor:
    """Weights with a set zeroed and the rest renormalised; all 0 where no weight is left: [..., key]."""
    return scaled(weights, mask & ~gone)


def heights(weights: Tensor, mask: Tensor) -> Tensor:
    """`levels` of the weights of real keys: [..., key]."""
    return levels(weights.masked_fill(~mask, torch.nan))


def rank_keys(values: Tensor, mask: Tensor) -> Tensor:
    """Places of the real keys from the highest value, from 0; the first of equals first, others last: [..., key]."""
    order = values.detach().masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    return torch.empty_like(order).scatter_(-1, order, places(order).expand_as(order))


def removal_sizes(mask: Tensor, count: int, share: float | None) -> Tensor:
    """How many keys a row's share is, rounded up, or the count: [..., 1]."""
    real = mask.sum(-1, keepdim=True)
    if share is None:
        return torch.full_like(real, count)
    return (real.double() * share - 1e-9).ceil().long().clamp(min=1)  # 0.07 · 100 is 7.000000000000001 here


def check_size(name: str, count: int, share: float | None) -> None:
    """Refuse what is no number of keys."""
    if count < 1:
        raise UsageError(f"intervention '{name}': count is a number of words, at least 1, not {count}")
    if share is not None and not (math.isfinite(share) and 0 < share <= 1):
        raise UsageError(f"intervention '{name}': share is a part of the words, above 0 and at most 1, not {share}")
