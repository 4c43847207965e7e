"""Gini correlation: do scores order words by how much they matter? (Schechtman & Yitzhaki 1987)

Kendall's τ counts every pair of words alike, and so it ranks the noise of a tail of words that don't matter. Here a
pair counts by the difference of its effects. With mid-ranks R among the n words of a text, scores s and effects e ≥ 0,

    Γ(e | s) = Σ_t (2 R_t(s) − n − 1) e_t / Σ_t (2 R_t(e) − n − 1) e_t

Since 2 R_t(s) − n − 1 = Σ_u sign(s_t − s_u), this is Σ_{t<u} sign(s_t − s_u) (e_t − e_u) / Σ_{t<u} |e_t − e_u|:
Kendall's coefficient with every pair weighted by |e_t − e_u|. A random order scores exactly 0 on average,
uniform scores 0, the order of the effects 1, its reverse −1; how scores order words of equal effects makes no
difference.

Where effects add up, Γ is the area between the curves of removal, scaled: what is lost after the first k words, summed
over all k, less what random words lose, over the same of the best order.
"""

import torch
from torch import Tensor

from exegete.base.ties import levels


def gini_correlation(scores: Tensor, effects: Tensor) -> Tensor:
    """Γ of every row, float64: [..., word] twice to [...]; a word whose score or effect is NaN is not there.

    NaN where no two effects differ: no order is better than another. Scores that differ by rounding are tied.

    >>> effects = torch.tensor([3.0, 1.0, 0.0])
    >>> gini_correlation(torch.tensor([0.6, 0.3, 0.1]), effects).item()
    1.0
    >>> gini_correlation(torch.tensor([0.3, 0.6, 0.1]), effects).item()
    0.3333333333333333
    """
    there = ~(scores.isnan() | effects.isnan())
    place = levels(scores.masked_fill(~there, torch.nan)).masked_fill(~there, 0)
    effects = effects.double().masked_fill(~there, 0.0)
    both = there[..., :, None] & there[..., None, :]
    order = (place[..., :, None] - place[..., None, :]).sign() * both  # [..., word, word]
    apart = (effects[..., :, None] - effects[..., None, :]) * both
    most = apart.abs().sum((-1, -2))
    found: Tensor = (order * apart).sum((-1, -2)) / most.where(most > 0, torch.nan)
    return found
