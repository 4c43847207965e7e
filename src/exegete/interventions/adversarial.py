"""Adversarial: the weights farthest from a model's own that leave its prediction (Jain & Wallace 2019, section 4.3)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.interventions.search import Search, find
from exegete.models.contract import AttentionModel, Site
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.next_word import NextWord


@dataclass(frozen=True)
class Adversarial(Search):
    """Search for adversaries, and take the one of largest JSD whose prediction changes by at most ε.

    The change is the total variation distance of the predicted distributions. Where no candidate is within ε the
    model's own weights stay. It rewrites the last site, which pools states for the decoder; other sites stay.
    """

    epsilon: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.epsilon <= 1:
            raise UsageError("intervention 'adversarial': epsilon is a change of a probability, from 0 to 1")

    def __call__(self, site: Site) -> Tensor:
        """Only for a model: adversaries are found by asking its decoder."""
        raise UsageError(
            f"intervention 'adversarial' at site '{site.name}' doesn't know the model that it is to deceive: "
            "bind it first, with exegete.interventions.contract.bound(intervention, model)"
        )

    def bound(self, model: AttentionModel) -> "Deceiving":
        """The intervention for a model whose last attention pools states."""
        if not isinstance(model, Classifier) or not model.sites:
            raise UsageError(
                f"intervention 'adversarial' rewrites a last attention that pools states, and {type(model).__name__} "
                "has none"
            )
        if isinstance(model, NextWord):
            raise UsageError(
                "intervention 'adversarial' searches for one weighting of a text, and a translator weighs it anew at "
                "every step: use the experiment adversary_search, which asks about one step"
            )
        return Deceiving(self, model)


@dataclass(frozen=True)
class Deceiving:
    """Adversarial weights for one model."""

    asked: Adversarial
    model: Classifier

    def __call__(self, site: Site) -> Tensor:
        """The adversary's weights at the last site; constants, for gradients."""
        if site.name != self.model.sites[-1]:
            return site.weights
        with torch.no_grad():  # a search needs no gradients of the encoder, which are dear
            encoded = self.model.encode(site.batch)
        own = site.weights.detach()[:, 0, 0]  # [batch, key]
        found = find(self.model, encoded, own, site.batch.ids, self.asked)
        best = found.best(self.asked.epsilon)
        chosen = found.weights.gather(1, best.clamp(min=0).view(-1, 1, 1).expand(-1, 1, own.shape[1]))[:, 0]
        chosen = chosen.to(own.dtype).where((best >= 0)[:, None], own)
        return chosen[:, None, None].expand_as(site.weights)
