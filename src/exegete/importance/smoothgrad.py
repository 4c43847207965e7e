"""SmoothGrad: the gradient of a neighbourhood, where the gradient of a point is rough (Smilkov et al. 2017).

    ĝ(x) = (1/n) Σ_k ∇ f_c(x + ε_k),   ε_k ~ N(0, σ²),   σ = noise × (max x − min x)

The range is that of the numbers in the embedded words of the text. Only words get noise: wrappers stay what they are.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.noise import normal
from exegete.base.places import places
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.derivative import copy_passes, derivative
from exegete.importance.gradient import GradientNorm, size
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class SmoothGrad:
    """‖ĝ‖₂ or ‖ĝ‖₁, which is sensitivity without a sign, or ĝ · x (`norm=input`), which is saliency with one."""

    family: ClassVar[str] = "gradients"
    label: ClassVar[str] = "SmoothGrad"

    norm: GradientNorm = "l2"
    samples: int = 50
    noise: float = 0.15  # σ as a share of the range; the authors advise 0.1 to 0.2
    of: Literal["logit", "probability"] = "logit"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"importance 'smoothgrad' needs at least 1 sample, not {self.samples}")
        if not self.noise >= 0:
            raise UsageError(f"importance 'smoothgrad' needs noise of 0 or more, not {self.noise}")

    @property
    def signed(self) -> bool:
        """A norm has no sign."""
        return self.norm == "input"

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward and one backward pass per sample; one more forward where the class is not given."""
        with torch.no_grad():
            embedded = model.embed(batch)
            target = target or predicted(model.logits(batch), self.of)
        gradient = self._mean_gradient(model, batch, target, embedded)
        values = size(gradient, embedded, self.norm)
        spent = cost(batch, self.samples, self.samples)
        return Scores(on_words(values, batch), signed=self.signed, target=target, cost=spent)

    def _mean_gradient(self, model: Predictor, batch: Batch, target: Target, embedded: Tensor) -> Tensor:
        """ĝ, [batch, token, size]."""
        total = torch.zeros_like(embedded, dtype=torch.float64)
        sigma = self.noise * _range(embedded, batch)  # [batch]
        rows = places(batch.ids).repeat_interleave(self.samples)  # [ask]
        draws = torch.arange(self.samples, device=batch.ids.device).repeat(len(batch.ids))
        for asks, part in copy_passes(batch, rows):
            row, width = rows[asks], part.tokens.shape[1]
            epsilon = sigma[row, None, None] * self._noise(part, draws[asks], embedded.shape[-1])
            moved = embedded[row, :width] + torch.where(part.words[..., None], epsilon, 0).to(embedded.dtype)
            found = derivative(model, part, target.at(row), embedded=moved)
            total[:, :width].index_add_(0, row, found.gradient.double())
        return total / self.samples

    def _noise(self, part: Batch, draws: Tensor, dimensions: int) -> Tensor:
        """Standard normal numbers keyed by example, draw, place among the words, and dimension."""
        word = part.words.cumsum(-1) - 1
        number = torch.arange(dimensions, device=word.device)
        return normal(self.seed, part.ids[:, None, None], draws[:, None, None], word[..., None], number)


def _range(embedded: Tensor, batch: Batch) -> Tensor:
    """Largest minus smallest number in the embedded words of every text; 0 where there are none.

    Where a word is several pieces side by side, what fills up shorter words doesn't count.
    """  # [batch]
    pieces, numbers = batch.cost[..., None], embedded.shape[-1]
    inside = batch.words[..., None] & (places(embedded) < pieces * (numbers // max(1, int(pieces.max()))))
    highest = embedded.masked_fill(~inside, -torch.inf).amax((1, 2))
    lowest = embedded.masked_fill(~inside, torch.inf).amin((1, 2))
    return torch.where(inside.any((1, 2)), highest - lowest, 0).double()
