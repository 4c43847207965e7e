"""Adversarial: the weights farthest from a model's own that leave its prediction (Jain & Wallace 2019, section 4.3)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.places import places
from exegete.interventions.search import Search, find
from exegete.models.capabilities import Stepwise, Writing
from exegete.models.contract import Predictor, Site
from exegete.models.openings import opened, unopened


@dataclass(frozen=True)
class Adversarial(Search):
    """Search for adversaries, and take the one of largest JSD whose prediction changes by at most ε.

    The change is the total variation distance of the predicted distributions. Where no candidate is within ε the
    model's own weights stay. It rewrites the readout, a model's last site; other sites stay.
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

    def bound(self, model: Predictor) -> "Deceiving":
        """The intervention for a model that predicts one class through attention."""
        if isinstance(model, Stepwise | Writing):
            raise UsageError(
                "intervention 'adversarial' searches for one weighting of a text, and a translator weighs it anew at "
                "every step: use the experiment adversary_search, which asks about one step"
            )
        if (reason := unopened(model)) is not None:
            raise UsageError(f"intervention 'adversarial' can't be bound to this model: {reason}")
        return Deceiving(self, model)


@dataclass(frozen=True)
class Deceiving:
    """Adversarial weights for one model."""

    asked: Adversarial
    model: Predictor

    def __call__(self, site: Site) -> Tensor:
        """The adversary's weights at the last site; constants, for gradients."""
        if site.name != self.model.sites[-1]:
            return site.weights
        with torch.no_grad():  # a search needs no gradients of the encoder, which are dear
            texts = opened(self.model, site.batch)
        own = texts.rows(site.weights.detach())  # [batch, head · query, key]
        found = find(replace(texts, weights=own.double()), self.asked)
        best = found.best(self.asked.epsilon)
        chosen = found.weights[places(own, 0), best.clamp(min=0)].to(own.dtype)
        rewritten = texts.whole(chosen.where((best >= 0)[:, None, None], own), site.weights.detach())
        return rewritten.where(site.mask, 0.0)
