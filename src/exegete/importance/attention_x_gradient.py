"""Attention × gradient: how much of a prediction hangs on each weight, to first order (Serrano & Smith 2019).

    α_t · ∂f_c/∂α_t

What is derived: the prediction as a function of the weights of one site. The weights that the model computed are put
back as free numbers; what the site attends over, and all that was computed before it, is constant. So the derivative
doesn't know that weights come from scores and sum to 1, nor that words make the states. What the model computes after
the site follows the weights. With a linear decoder ∂logit_c/∂α_t is (W h_t)_c, and the scores of a text add up to its
logit without the bias. In a hierarchical model the weights are those of words in their sentences, unless the other site
is named: the weight of the sentence is then part of the derivative.

With `site=all`, the scores of all layers of self-attention are added up, each as if it were named: the weights of one
layer are derived by themselves, and those above follow what they change.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.attention import of_tokens, refuse_unweighed, sites_of, without_attention
from exegete.importance.contract import Scores, Target, cost, on_words
from exegete.importance.derivative import default_target, support
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor, Site
from exegete.tasks.batching import Batch

ALL = "all"


@dataclass(frozen=True)
class AttentionXGradient:
    """α_t · ∂f_c/∂α_t, added up over heads and queries where there are several."""

    family: ClassVar[str] = "attention"

    site: str | None = None  # the model's last one, or the lowest of a hierarchy, unless named; all: of every layer
    of: Literal["logit", "probability"] = "logit"

    def refuses(self, model: Predictor) -> str | None:
        """Where there is no attention, nothing can be derived by it."""
        if self.site == ALL and not (isinstance(model, SelfAttentive) and model.self_attention):
            return f"site=all adds up layers of self-attention, and {type(model).__name__} has none: leave it out"
        return without_attention(model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass for the whole batch; the latter stops at the lowest of the weights."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        sites = self._sites(model)
        met: list[tuple[Tensor, Tensor]] = []  # weights and what is added to them, 0, for every call of a site

        def impose(found: Site) -> Tensor:
            if found.name not in sites:
                return found.weights
            own = found.weights if met else found.weights.detach()  # nothing is asked of what lies below the lowest
            met.append((own.detach(), torch.zeros_like(own).requires_grad_()))
            return own + met[-1][1]

        trace = model.trace(batch, intervene=impose)
        refuse_unweighed(trace, sites, batch)
        target = target or default_target(trace.logits, batch, self.of)
        weights, added = zip(*met, strict=True)
        gradients = torch.autograd.grad(support(trace.logits.double(), target).sum(), added)
        shares = sum((w * g).sum((1, 2)) for w, g in zip(weights, gradients, strict=True))  # [batch, key]
        assert isinstance(shares, Tensor)
        values = of_tokens(shares, trace.owner[sites[0]])
        return Scores(on_words(values, batch), signed=True, target=target, cost=cost(batch, 1, 1))

    def _sites(self, model: Predictor) -> tuple[str, ...]:
        if self.site == ALL and isinstance(model, SelfAttentive):
            return model.self_attention
        return sites_of(model, self.site)[:1]
