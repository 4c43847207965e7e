"""Attention × norm: a large weight on a small vector does little (Kobayashi et al. 2020, section 3).

    α_t ‖v_t‖₂

v_t is what the weight multiplies: for a model that pools its states, the state h_t. In a hierarchical model it is the
word's state, and α_t the product of the weights of both levels, unless a site is named.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from exegete.importance.attention import of_tokens, refuse_unweighed, sites_of, weight_of_tokens, without_attention
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class AttentionXNorm:
    """α_t ‖h_t‖₂ at one site, with α averaged over heads and queries where there are several."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    site: str | None = None  # the model's last one, or all levels of a hierarchy, unless named

    def refuses(self, model: Predictor) -> str | None:
        """Where there is no attention, nothing can be read."""
        return without_attention(model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward pass; the scores are the same for every class."""
        sites = sites_of(model, self.site)
        with torch.no_grad():
            trace = model.trace(batch)
        refuse_unweighed(trace, sites, batch)
        norms = of_tokens(trace.states[sites[0]].norm(dim=-1), trace.owner[sites[0]])  # [batch, token]
        values = weight_of_tokens(trace, sites, model.readout) * norms
        target = target or predicted(trace.logits)
        return Scores(on_words(values, batch), signed=self.signed, target=target, cost=cost(batch, forward=1))
