"""Detach: attention weights as constants: no gradient through how they were computed (Jain & Wallace 2019)."""

from dataclasses import dataclass

from torch import Tensor

from exegete.interventions.contract import Rewrite
from exegete.models.contract import Site


@dataclass(frozen=True)
class Detach(Rewrite):
    """A model's own weights, without their history."""

    def rewritten(self, site: Site) -> Tensor:
        """Weights, detached."""
        return site.weights.detach()
