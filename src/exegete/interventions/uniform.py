"""Uniform: every word gets the same weight (Wiegreffe & Pinter 2019; Vashishth et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.interventions.contract import Rewrite, mask_of, scaled, total_of
from exegete.models.contract import Site


@dataclass(frozen=True)
class Uniform(Rewrite):
    """α_t = 1/n over the n real keys of a row; where its weights sum to another total, that total / n."""

    def rewritten(self, site: Site) -> Tensor:
        """One over the number of real keys."""
        return scaled(torch.ones_like(site.weights), mask_of(site)) * total_of(site)
