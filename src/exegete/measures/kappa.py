"""Cohen's κ: how much two people agree beyond what their habits alone would give (Cohen 1960).

    κ = (p_o − p_e) / (1 − p_e),   p_o = share of items with equal answers,   p_e = Σ_c p₁(c) p₂(c)

p₁(c) and p₂(c) are how often either gives the answer c. Chance is 0, agreement on every item 1. Where both give one and
the same answer throughout, p_e = 1 and κ is undefined: NaN, to be counted and said.
"""

import math

import torch
from torch import Tensor

from exegete.measures.statistics import Interval

DRAWS = 2000
TAILS = (0.025, 0.975)


def kappa(first: Tensor, second: Tensor) -> Tensor:
    """κ of two lists of answers, [..., item] each, any values as answers; float64 [...]."""
    if first.shape != second.shape or not first.dim() or not first.shape[-1]:
        raise ValueError(f"two people answer the same items, one or more: not {[*first.shape]} and {[*second.shape]}")
    codes = torch.stack([first, second]).unique(return_inverse=True)[1]  # [2, ..., item]
    own: Tensor = torch.nn.functional.one_hot(codes).double().mean(-2)  # [2, ..., answer]: p₁ and p₂
    expected = own.prod(0).sum(-1)
    observed = (codes[0] == codes[1]).double().mean(-1)
    found: Tensor = (observed - expected) / (1 - expected)  # 0 / 0, exactly, where both give one answer throughout
    return found


def kappa_interval(first: Tensor, second: Tensor, draws: int = DRAWS, seed: int = 0) -> Interval:
    """κ of two lists [item], and the 95 % percentiles of κ over samples of the items with replacement (Efron 1979).

    Samples in which κ is undefined are left out. `n` counts items; where κ itself is undefined, all three are NaN.
    """
    n = len(first)
    whole = math.nan if n == 0 else kappa(first, second).item()
    if math.isnan(whole):
        return Interval(math.nan, math.nan, math.nan, n, n)
    picked = torch.randint(n, (draws, n), generator=torch.Generator().manual_seed(seed))
    drawn = kappa(first[picked], second[picked])
    low, high = drawn[~drawn.isnan()].quantile(torch.tensor(TAILS, dtype=torch.float64)).tolist()
    return Interval(whole, low, high, n, 0)
