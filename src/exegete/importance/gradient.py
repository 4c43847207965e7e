"""Gradient: how fast a prediction changes with a word's embedding (Jain & Wallace 2019, section 4.1; PROTOCOLS 3.1)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from exegete.importance.contract import Quantity, Scores, Target, explained, on_words, predicted
from exegete.interventions.detach import Detach
from exegete.models.contract import AttentionModel
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class Gradient:
    """|e_t · ∂f/∂e_t|, or the L1 or L2 norm of ∂f/∂e_t.

    The first is the derivative by the word's own one-hot coordinate (Neely & Schouten 2020, equation 1). With one
    output, logit, probability and loss give proportional scores within a text; the logit alone doesn't vanish where
    probabilities saturate.
    """

    norm: Literal["input", "l1", "l2"] = "input"
    detach: bool = False  # attention weights as constants (Jain & Wallace), or part of the function (Neely & Schouten)
    of: Quantity = "logit"  # loss: of the gold label, as Neely & Schouten

    def __call__(self, model: AttentionModel, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass for the whole batch."""
        embedded = model.embed(batch).detach().requires_grad_()
        trace = model.trace(batch, embedded=embedded, intervene=Detach() if self.detach else None)
        if target is None:
            target = Target(batch.label, of="loss") if self.of == "loss" else predicted(trace.logits, self.of)
        (gradient,) = torch.autograd.grad(explained(trace.logits, target).sum(), embedded)  # [batch, token, size]
        return Scores(on_words(self._size(gradient, embedded.detach()), batch), signed=False, target=target)

    def _size(self, gradient: Tensor, embedded: Tensor) -> Tensor:
        """One number per token from [batch, token, size] twice."""
        if self.norm == "input":
            return (gradient * embedded).sum(-1).abs()
        return gradient.abs().sum(-1) if self.norm == "l1" else gradient.square().sum(-1).sqrt()
