"""Projections: scores to a distribution over the real keys. The one exception: weights of `gates` don't sum to 1.

All are masked: a key outside the mask gets exactly 0, and its score changes nothing. A row without any real key is all
0 (a text from which the only word was deleted). Gradients are exact (those of `entmax`, by its authors, for the sparse
ones).
"""

from abc import ABC, abstractmethod

import torch
from entmax import entmax15, entmax_bisect, sparsemax
from torch import Tensor, nn

from exegete.base.catalogue import Catalogue, Entry
from exegete.base.errors import UsageError


class Projection(nn.Module, ABC):
    """A map from scores [..., key] and mask [..., key] to weights [..., key], 0 outside the mask.

    Weights sum to 1 over a mask that is not empty. Only those of `Gates` don't.
    """

    @abstractmethod
    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Weights of every key."""


class Distribution(Projection):
    """A projection that is defined without a mask, and masked by low scores."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Project, with 0 outside the mask, also where nothing is inside it."""
        mask = mask.expand_as(scores)
        weights = self.project(self._low(scores, mask))
        return weights.masked_fill(~mask, 0.0)

    @abstractmethod
    def project(self, scores: Tensor) -> Tensor:
        """The projection itself, of scores whose masked entries are too low to get weight."""

    @abstractmethod
    def reach(self) -> Tensor | float:
        """How far below the highest score a key certainly gets no weight."""

    def _low(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Masked scores replaced by one that gets no weight: finite, so that no inf − inf can arise."""
        highest = scores.detach().masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
        floor = torch.where(highest.isfinite(), highest, 0.0) - self.reach() - 1.0
        return torch.where(mask, scores, floor)


class Softmax(Distribution):
    """p ∝ exp(z)."""

    def project(self, scores: Tensor) -> Tensor:
        """exp(z) / Σ exp(z)."""
        return scores.softmax(-1)

    def reach(self) -> float:
        """exp(−1000) is 0 in any float."""
        return 1000.0


class Sparsemax(Distribution):
    """The Euclidean projection of z on the simplex (Martins & Astudillo 2016, equation 2)."""

    def project(self, scores: Tensor) -> Tensor:
        """argmin_p ‖p − z‖²."""
        weights: Tensor = sparsemax(scores, dim=-1)
        return weights

    def reach(self) -> float:
        """The threshold is at least max z − 1, where one key takes all."""
        return 1.0


class Sparsegen(Distribution):
    """argmin_p ‖p − z‖² − λ‖p‖² (Laha et al. 2018), which is sparsemax(z / (1 − λ)): complete the square.

    λ → 1 gives one-hot weights, λ = 0 sparsemax, λ → −∞ uniform ones (Meister et al. 2021, section 2).
    """

    def __init__(self, lam: float) -> None:
        super().__init__()
        if not lam < 1:
            raise UsageError(f"sparsegen needs lam < 1, not {lam}: at 1 all weight would be on one word")
        self.lam = lam

    def project(self, scores: Tensor) -> Tensor:
        """Sparsemax of the scores, stretched."""
        weights: Tensor = sparsemax(scores / (1 - self.lam), dim=-1)
        return weights

    def reach(self) -> float:
        """Sparsemax's reach of 1, before the stretch."""
        return 1.0 - self.lam


class Entmax(Distribution):
    """α-entmax (Peters et al. 2019): softmax at α = 1, sparsemax at α = 2; α given or learned (Correia et al. 2019)."""

    def __init__(self, alpha: float = 1.5, learned: bool = False) -> None:
        super().__init__()
        if not 1 < alpha <= 2:
            raise UsageError(f"entmax needs 1 < alpha <= 2, not {alpha}: use softmax for 1")
        # α = 1 + σ(a) stays inside (1, 2) whatever training does; α = 2 itself can only be given.
        start = torch.tensor(alpha - 1).clamp(max=1 - 1e-4).logit()
        self.raw = nn.Parameter(start) if learned else None
        self.given = alpha

    @property
    def alpha(self) -> Tensor | float:
        """The α in force."""
        return self.given if self.raw is None else 1 + self.raw.sigmoid()

    def project(self, scores: Tensor) -> Tensor:
        """The closed form at 1.5 and 2; bisection elsewhere."""
        weights: Tensor
        if self.raw is None and self.given == 1.5:
            weights = entmax15(scores, dim=-1)
        elif self.raw is None and self.given == 2:
            weights = sparsemax(scores, dim=-1)
        else:
            weights = entmax_bisect(scores, self.alpha, dim=-1)
        return weights

    def reach(self) -> Tensor | float:
        """(α − 1)(max z − z) ≥ 1 puts a key at the threshold."""
        alpha = self.alpha
        return 1 / ((alpha.detach() if isinstance(alpha, Tensor) else alpha) - 1)


class Gates(Projection):
    """σ(z_t) / n over the n real keys: every key has a gate of its own, and takes nothing from the others.

    For one sequence, attention is such a gate (Vashishth et al. 2019, proposition 4.1). The weights sum to the mean
    gate, which is below 1: they are no distribution, and whatever compares distributions must not be asked about them.
    """

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The mean of the gated states is what such weights pool."""
        mask = mask.expand_as(scores)
        gates = scores.sigmoid() / mask.sum(-1, keepdim=True).clamp(min=1)
        return gates.masked_fill(~mask, 0.0)


PROJECTIONS = Catalogue(
    "projection",
    {
        "softmax": Entry(Softmax, "exp(z) / Σ exp(z): every word gets some weight"),
        "sparsemax": Entry(Sparsemax, "Euclidean projection on the simplex: exact zeros"),
        "sparsegen": Entry(Sparsegen, "sparsemax with a dial: lam below 1, larger is sparser"),
        "entmax": Entry(Entmax, "between softmax (alpha 1) and sparsemax (alpha 2); alpha given or learned"),
        "gates": Entry(Gates, "σ(z) / n, every word on its own: weights don't sum to 1 (Vashishth et al. 2019)"),
    },
)
