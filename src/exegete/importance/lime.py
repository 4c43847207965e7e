"""LIME: a weighted ridge regression on which words stay, around one text (Ribeiro et al. 2016, section 3.4)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.surrogate import Game, Surrogate


@dataclass(frozen=True)
class Lime(Surrogate):
    """Coefficients β of f_c(z) ≈ β₀ + Σ_t β_t z_t, with z_t = 1 where word t stays.

        min Σ_z π(z) (f_c(z) − β₀ − z·β)² + α ‖β‖²,   π(z) = sqrt(exp(−d²/width²)),   d = 100 (1 − cos(z, 1))

    as in the authors' code for texts: z is the text itself once, and otherwise has a number of removed words drawn
    uniformly from 1 … T, and those words drawn uniformly; β₀ is not penalised. That code removes all copies of a word
    at once and keeps only some of the words; here every word has its own place and its own coefficient.

    Instead of drawing sizes uniformly, we take the coalitions of exegete.importance.coalitions and weigh each by (what
    Ribeiro's sampler expects of it) / (what our design expects of it). The sums in the fit have the same expectation
    with less variance, α means the same, and KernelSHAP's texts need not be run twice.
    """

    family: ClassVar[str] = "erasure"
    label: ClassVar[str] = "LIME"

    width: float = 25.0  # of the kernel
    alpha: float = 1.0  # of the ridge

    def __post_init__(self) -> None:
        super().__post_init__()
        if not min(self.width, self.alpha) > 0:
            raise UsageError(f"importance 'lime' needs width and alpha above 0, not {self.width:g} and {self.alpha:g}")

    def fit(self, game: Game) -> Tensor:
        """Closed form, for all texts at once."""
        whole, empty = game.words[:, None], torch.zeros_like(game.words)[:, None]
        z = torch.cat([whole, empty, game.kept], 1).double()  # [text, 2 + sample, token]
        y = torch.cat([game.whole[:, None], game.empty[:, None], game.values], 1)
        return ridge(z, y, self.weights(game), self.alpha)

    def weights(self, game: Game) -> Tensor:
        """π(z) times how often Ribeiro's sampler draws z; first the whole text, then the empty one."""
        n = game.lengths[:, None].clamp(min=1)
        often = self.samples / n * torch.cat([torch.ones_like(game.whole)[:, None], game.share], 1)  # each size alike
        sizes = torch.cat([torch.zeros_like(n), game.sizes], 1)
        drawn = often * self._kernel(sizes / n)
        return torch.cat([torch.ones_like(game.whole)[:, None], drawn], 1)  # [text, 2 + sample]

    def _kernel(self, kept: Tensor) -> Tensor:
        """π by the share of words that stay: cos(z, 1) = √(|z| / T), and 0 for the empty text."""
        d = 100 * (1 - kept.sqrt())
        return (-(d**2) / self.width**2).exp().sqrt()


def ridge(z: Tensor, y: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """Weighted ridge with a free intercept: z [text, sample, token], y and weights [text, sample] to β [text, token].

    In its dual form where there are more tokens than samples: the same β from a smaller system.
    """
    y, root = y[..., None], weights.sqrt()[..., None]  # [text, sample, 1]
    share = (weights / weights.sum(-1, keepdim=True))[:, None]  # [text, 1, sample]
    z = (z - share @ z).mul_(root)  # centred, so that the intercept drops out
    y = (y - share @ y).mul_(root)
    penalty = alpha * torch.eye(min(z.shape[1:]), dtype=z.dtype, device=z.device)
    if z.shape[1] >= z.shape[2]:
        beta: Tensor = torch.linalg.solve(z.mT @ z + penalty, z.mT @ y)
    else:
        beta = z.mT @ torch.linalg.solve(z @ z.mT + penalty, y)
    return beta[..., 0]
