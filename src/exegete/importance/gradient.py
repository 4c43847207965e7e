"""Gradient: how fast a prediction changes with a word's embedding (Jain & Wallace 2019, section 4.1)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from exegete.importance.contract import Quantity, Scores, Target, cost, on_words
from exegete.importance.derivative import derivative
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

GradientNorm = Literal["input", "l1", "l2"]


@dataclass(frozen=True)
class Gradient:
    """|e_t · ∂f/∂e_t|, or the L1 or L2 norm of ∂f/∂e_t.

    The first is the derivative by the word's own one-hot coordinate (Neely & Schouten 2020, equation 1). With one
    output, logit, probability and loss give proportional scores within a text; the logit alone doesn't vanish where
    probabilities saturate.
    """

    family: ClassVar[str] = "gradients"
    signed: ClassVar[bool] = False

    norm: GradientNorm = "input"
    detach: bool = False  # attention weights as constants (Jain & Wallace), or part of the function (Neely & Schouten)
    of: Quantity = "logit"  # loss: of the gold label, as Neely & Schouten

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass for the whole batch."""
        found = derivative(model, batch, target or self.of, detach=self.detach)
        values = size(found.gradient, found.embedded, self.norm).abs()
        return Scores(on_words(values, batch), signed=self.signed, target=found.target, cost=cost(batch, 1, 1))


def size(gradient: Tensor, embedded: Tensor, norm: GradientNorm) -> Tensor:
    """One number per token from [batch, token, size] twice: g · x (the only one with a sign), ‖g‖₁ or ‖g‖₂."""
    if norm == "input":
        return (gradient * embedded).sum(-1)
    return gradient.abs().sum(-1) if norm == "l1" else gradient.square().sum(-1).sqrt()
