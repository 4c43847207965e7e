"""Attention × norm: a large weight on a small vector does little (Kobayashi et al. 2020, section 3).

    α_t ‖v_t‖₂

v_t is what the weight multiplies: for a model that pools its states, the state h_t.
"""

from dataclasses import dataclass

import torch

from exegete.importance.attention import of_tokens, site_of
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.contract import AttentionModel
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class AttentionXNorm:
    """α_t ‖h_t‖₂ at one site, with α averaged over heads and queries where there are several."""

    site: str | None = None  # the model's last one unless named

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """One forward pass; the scores are the same for every class."""
        site = site_of(model, self.site)
        with torch.no_grad():
            trace = model.trace(batch)
        weights, norms = trace.attention[site].mean((1, 2)), trace.states[site].norm(dim=-1)  # [batch, key] both
        values = of_tokens(weights * norms, trace.owner[site])
        target = target or predicted(trace.logits)
        return Scores(on_words(values, batch), signed=False, target=target, cost=cost(batch, forward=1))
