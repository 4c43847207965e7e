"""Restriction to sites or heads: any intervention at some places of a model, as its first layers."""

from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor

from exegete.base.errors import unknown
from exegete.interventions import contract
from exegete.interventions.sites import Head, in_heads
from exegete.models.contract import Intervention, Predictor, Site


@dataclass(frozen=True)
class _At:
    """What is done somewhere; all other weights stay as they are."""

    places: tuple[str, ...] | tuple[Head, ...]
    inner: Intervention

    def acts_at(self, site: str) -> bool:
        """At the sites of its places."""
        return any((place.site if isinstance(place, Head) else place) == site for place in self.places)

    def bound(self, model: Predictor) -> Self:
        """Ready for a model; a site that it doesn't have is refused."""
        for place in self.places:
            name = place.site if isinstance(place, Head) else place
            if name not in model.sites:
                raise unknown("site", name, model.sites)
        return replace(self, inner=contract.bound(self.inner, model))

    def renewed(self, epoch: int) -> Self:
        """With what is drawn anew in an epoch of a training."""
        inner = contract.renewed(self.inner, epoch)
        assert inner is not None
        return replace(self, inner=inner)


@dataclass(frozen=True)
class AtSites(_At):
    """At these sites."""

    places: tuple[str, ...]

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, rewritten if it is one of them."""
        return self.inner(site) if site.name in self.places else site.weights


@dataclass(frozen=True)
class AtHeads(_At):
    """In these heads, of one site or of several."""

    places: tuple[Head, ...]

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, rewritten in those of its heads that are meant."""
        heads = [place.head for place in self.places if place.site == site.name]
        return in_heads(self.inner(site), site, heads) if heads else site.weights
