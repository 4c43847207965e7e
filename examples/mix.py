"""Mix: an intervention of your own, as small as one can be. Attention is drawn towards the uniform distribution."""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.plugins import INTERVENTIONS, Rewrite, Site, mask_of, scaled


@dataclass(frozen=True)
class Mix(Rewrite):
    """(1 − share) α + share / n: at 0 nothing changes, at 1 every word weighs the same."""

    share: float = 0.5

    def rewritten(self, site: Site) -> Tensor:
        """Weights of the shape of the site's, 0 outside the mask."""
        even = scaled(torch.ones_like(site.weights), mask_of(site))  # [batch, head, query, key]
        return (1 - self.share) * site.weights + self.share * even


INTERVENTIONS.add("mix", Mix, "attention drawn towards the uniform distribution")
