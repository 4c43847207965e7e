"""At sites: an intervention at some sites of a model, such as its first layers (Vashishth et al. 2019, figure 4)."""

from dataclasses import dataclass, replace

from torch import Tensor

from exegete.base.errors import unknown
from exegete.interventions import contract
from exegete.models.contract import Intervention, Predictor, Site


@dataclass(frozen=True)
class AtSites:
    """What is done at these sites; the weights of all others stay as they are."""

    sites: tuple[str, ...]
    inner: Intervention

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, rewritten if it is one of them."""
        return self.inner(site) if site.name in self.sites else site.weights

    def bound(self, model: Predictor) -> "AtSites":
        """Ready for a model; a site that it doesn't have is refused."""
        for name in self.sites:
            if name not in model.sites:
                raise unknown("site", name, model.sites)
        return replace(self, inner=contract.bound(self.inner, model))

    def renewed(self, epoch: int) -> "AtSites":
        """With what is drawn anew in an epoch of a training."""
        inner = contract.renewed(self.inner, epoch)
        assert inner is not None
        return replace(self, inner=inner)
