"""Attention × gradient: how much of a prediction hangs on each weight, to first order (Serrano & Smith 2019).

    α_t · ∂f_c/∂α_t

What is derived: the prediction as a function of the weights of one site. The weights that the model computed are put
back as free numbers; what the site attends over, and all that was computed before it, is constant. So the derivative
doesn't know that weights come from scores and sum to 1, nor that words make the states. What the model computes after
the site follows the weights. With a linear decoder ∂logit_c/∂α_t is (W h_t)_c, and the scores of a text add up to its
logit without the bias. In a hierarchical model the weights are those of words in their sentences, unless the other site
is named: the weight of the sentence is then part of the derivative.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from exegete.importance.attention import of_tokens, sites_of, weighed, without_attention
from exegete.importance.contract import Scores, Target, cost, on_words
from exegete.importance.derivative import chosen, support
from exegete.models.contract import Predictor, Site
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class AttentionXGradient:
    """α_t · ∂f_c/∂α_t, added up over heads and queries where there are several."""

    family: ClassVar[str] = "attention"

    site: str | None = None  # the model's last one, or the lowest of a hierarchy, unless named
    of: Literal["logit", "probability"] = "logit"

    def refuses(self, model: Predictor) -> str | None:
        """Where there is no attention, nothing can be derived by it."""
        return without_attention(model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass for the whole batch; the latter stops at the weights."""
        site = sites_of(model, self.site)[0]
        free: list[Tensor] = []  # [batch, head, query, key], for every call of the site

        def impose(found: Site) -> Tensor:
            if found.name != site:
                return found.weights
            free.append(found.weights.detach().requires_grad_())
            return free[-1]

        trace = model.trace(batch, intervene=impose)
        weighed(trace, (site,), batch)
        target = target or chosen(trace.logits, batch, self.of)
        gradients = torch.autograd.grad(support(trace.logits.double(), target).sum(), free)
        shares = sum((w.detach() * g).sum((1, 2)) for w, g in zip(free, gradients, strict=True))  # [batch, key]
        assert isinstance(shares, Tensor)
        values = of_tokens(shares, trace.owner[site])
        return Scores(on_words(values, batch), signed=True, target=target, cost=cost(batch, 1, 1))
