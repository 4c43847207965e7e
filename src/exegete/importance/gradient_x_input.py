"""Gradient × input: what a word adds to a prediction, to first order (Denil et al. 2015).

    ∇_{x_i} f_c(x) · x_i

(Bastings & Filippova 2020, equation 3.) A gradient alone is sensitivity: how much a change of the word would matter.
Its product with the word is saliency: how much this word mattered, for (> 0) or against (< 0) the class.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from exegete.importance.contract import Scores, Target, cost, on_words
from exegete.importance.derivative import derivative
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class GradientXInput:
    """∇_{x_i} f_c · x_i; for a function that is linear in the words it is the share of each, exactly."""

    family: ClassVar[str] = "gradients"

    of: Literal["logit", "probability"] = "logit"
    detach: bool = False  # attention weights as constants, or part of the function

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass for the whole batch."""
        found = derivative(model, batch, target or self.of, detach=self.detach)
        values = (found.gradient * found.embedded).sum(-1)
        return Scores(on_words(values, batch), signed=True, target=found.target, cost=cost(batch, 1, 1))
