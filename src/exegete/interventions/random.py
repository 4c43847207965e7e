"""Random: weights from a generator of random numbers (Vashishth et al. 2019, section 4.1)."""

from dataclasses import dataclass

from torch import Tensor

from exegete.base.noise import stable_seed
from exegete.interventions.contract import Drawn, mask_of, noise, scaled, total_of
from exegete.models.contract import Site


@dataclass(frozen=True)
class Random(Drawn):
    """α_t = u_t / Σ u, u_t ~ U(0, 1), over the real keys of a row, times its total."""

    def rewritten(self, site: Site) -> Tensor:
        """Keyed numbers, normalised."""
        drawn = noise(site, stable_seed("random", self.seed))  # [batch, head, query, key]
        return scaled(drawn, mask_of(site)).to(site.weights.dtype) * total_of(site)
