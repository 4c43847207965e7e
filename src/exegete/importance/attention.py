"""Attention itself as an importance: the weight of the key that a word belongs to."""

from dataclasses import dataclass

import torch

from exegete.base.errors import unknown
from exegete.importance.contract import Scores, Target, on_words, predicted
from exegete.models.contract import AttentionModel
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Attention:
    """α_t at one site, averaged over heads and queries where there are several."""

    site: str | None = None  # the model's last one unless named

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """The model's own weights; they are the same for every class."""
        site = self.site or model.sites[-1]
        if site not in model.sites:
            raise unknown("site", site, model.sites)
        with torch.no_grad():
            trace = model.trace(batch)
        weights, owner = trace.attention[site].mean((1, 2)), trace.owner[site]  # [batch, key], [batch, token]
        values = weights.gather(-1, owner.clamp(min=0))
        return Scores(on_words(values, batch), signed=False, target=target or predicted(trace.logits))
