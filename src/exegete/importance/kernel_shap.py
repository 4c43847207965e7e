"""KernelSHAP: Shapley values by a weighted regression on which words stay (Lundberg & Lee 2017, section 4.1)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from exegete.importance.integrated_gradients import FLOOR
from exegete.importance.surrogate import Game, Surrogate

SINGULAR = 1e-10  # an eigenvalue below this part of the largest one is a direction that no coalition tells about


@dataclass(frozen=True)
class KernelShap(Surrogate):
    """φ that divide f_c(x) − f_c(∅) among the words: the mean gain from adding a word, over all orders of adding.

        min Σ_z π(z) (f_c(z) − f_c(∅) − z·φ)²  so that  Σ_t φ_t = f_c(x) − f_c(∅),
        π(z) = (T − 1) / (C(T, |z|) |z| (T − |z|))

    (theorem 2). Exact where the budget holds all 2^T − 2 subsets. Otherwise a sample: all subsets of one word and of
    all but one (budget allowing), then pairs of a subset and its complement with sizes from the kernel itself; see
    exegete.importance.coalitions. The sum holds exactly in any case, and `Scores.error` shows it. Where the
    coalitions don't determine φ (fewer of them than words), it is the solution nearest to equal shares: the limit of a
    vanishing ridge.
    """

    family: ClassVar[str] = "erasure"
    label: ClassVar[str] = "KernelSHAP"

    def fit(self, game: Game) -> Tensor:
        """φ = Δ/T + δ with Σ δ = 0: equal shares, and what the coalitions say against them."""
        n = game.lengths.clamp(min=1)
        gain = game.whole - game.empty  # Δ
        part = game.sizes / n[:, None]  # [text, sample]: |z| / T
        equal = (gain / n)[:, None] * game.words
        z = game.kept.double().sub_(part[..., None]).mul_(game.words[:, None])  # sums to 0, as δ does
        y = game.values - game.empty[:, None] - part * gain[:, None]
        return equal + least_squares(z, y, self.weights(game))

    def weights(self, game: Game) -> Tensor:
        """π of a coalition: of all coalitions of its size together, times its share of them."""
        n, k = game.lengths[:, None], game.sizes
        return game.share * (n - 1) / (k * (n - k)).clamp(min=1)

    def error(self, game: Game, values: Tensor) -> Tensor:
        """|Σ φ − (f_c(x) − f_c(∅))|, relative to the difference: rounding only."""
        gain = game.whole - game.empty
        return (values.sum(-1) - gain).abs() / gain.abs().clamp(min=FLOOR)


def least_squares(z: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Weighted least squares of smallest norm: z [text, sample, token], y and weights [text, sample]."""
    root = weights.sqrt()
    z, y = z.mul(root[..., None]), (y * root)[..., None]
    if z.shape[1] >= z.shape[2]:
        found: Tensor = torch.linalg.pinv(z.mT @ z, rtol=SINGULAR, hermitian=True) @ (z.mT @ y)
    else:
        found = z.mT @ (torch.linalg.pinv(z @ z.mT, rtol=SINGULAR, hermitian=True) @ y)
    return found[..., 0]
