"""Silence: a head that gives nothing (Michel et al. 2019, section 2.3: ξ_h = 0, the head mask).

    MHAtt(x, q) = Σ_h ξ_h Att_h(x, q),   Att_h(x, q) = W_O,h Σ_t α_t W_V,h x_t

Att_h is linear in the weights, so a head without any weight is one with ξ_h = 0, its value's bias included.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.contract import Rewrite
from exegete.models.contract import Site
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Silence(Rewrite):
    """α = 0 on every key; with `sinks=false`, on all keys but the sinks.

    A head with nothing to do rests on a symbol or on the first token (Clark et al. 2019, section 3.2). Silenced but
    for its sinks, it loses what it reads from words, and keeps the rest that the layers above are used to.
    """

    sinks: bool = True  # whether weights on the first token and on symbols go, too

    def rewritten(self, site: Site) -> Tensor:
        """Nothing, or what lies on sinks."""
        if self.sinks:
            return torch.zeros_like(site.weights)
        resting = sinks_of(site.batch)
        if site.weights.shape[-1] != resting.shape[-1]:
            raise UsageError(
                f"intervention 'silence': at site '{site.name}' no token is looked at, so that none is a sink: "
                "leave sinks=false out"
            )
        return site.weights.where(resting[:, None, None], 0.0)


def sinks_of(batch: Batch) -> Tensor:
    """The first token of a text that has any piece, and all start and end symbols: [batch, token]."""
    there = batch.cost > 0
    return there & ((there.cumsum(-1) == 1) | (batch.sentence < 0))
