"""Attention itself as an importance: the weight of the key that a word belongs to."""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.errors import unknown
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.contract import AttentionModel
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Attention:
    """α_t at one site, averaged over heads and queries where there are several."""

    site: str | None = None  # the model's last one unless named

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """The model's own weights; they are the same for every class."""
        site = site_of(model, self.site)
        with torch.no_grad():
            trace = model.trace(batch)
        values = of_tokens(trace.attention[site].mean((1, 2)), trace.owner[site])
        target = target or predicted(trace.logits)
        return Scores(on_words(values, batch), signed=False, target=target, cost=cost(batch, forward=1))


def site_of(model: AttentionModel, name: str | None) -> str:
    """The site that is meant: the model's last one unless named."""
    if name is not None and name not in model.sites:
        raise unknown("site", name, model.sites)
    return name or model.sites[-1]


def of_tokens(values: Tensor, owner: Tensor) -> Tensor:
    """Every token gets what its key has, [batch, key] to [batch, token]; a token that no key owns gets NaN."""
    return values.gather(-1, owner.clamp(min=0)).masked_fill(owner < 0, torch.nan)
