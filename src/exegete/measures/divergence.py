"""Divergence: how far apart are two distributions, and how flat is one?

Over the last dimension, in float64, whatever the dimensions before it. NaN marks an absent item, in the same places of
both; a distribution without items gives NaN. Weights are taken as they are: they are expected to sum to 1 and are not
normalised here. Those of the projection `gates` don't sum to 1, and are not for these measures.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def tvd(p: Tensor, q: Tensor) -> Tensor:
    """Total variation distance ½ Σ |p − q|: 0 for equal distributions, 1 for disjoint ones (Jain & Wallace 2019)."""
    return _over_items(lambda p, q: (p - q).abs() / 2, p, q)


def kl(p: Tensor, q: Tensor) -> Tensor:
    """Kullback–Leibler divergence Σ p ln(p / q), with 0 ln 0 = 0; infinite where q is 0 and p is not."""
    return _over_items(_relative, p, q)


def jsd(p: Tensor, q: Tensor) -> Tensor:
    """Jensen–Shannon divergence ½ KL(p, m) + ½ KL(q, m), m = (p + q)/2: from 0 to ln 2 (Lin 1991, with equal weights).

    Small whenever both are flat: show it beside the divergence with one of them permuted.
    """
    return _over_items(lambda p, q: (_relative(p, (p + q) / 2) + _relative(q, (p + q) / 2)) / 2, p, q)


def normalised_entropy(p: Tensor, mask: Tensor | None = None) -> Tensor:
    """−Σ p ln p / ln n over the n real items: 0 for one-hot, 1 for uniform weights; undefined for a single item.

    mask is True on real items; NaN marks absent ones too.
    """
    kept = p if mask is None else p.masked_fill(~mask, torch.nan)
    weights, real = _weights(kept)
    n = real.sum(-1).double()
    entropy: Tensor = -torch.xlogy(weights, weights).sum(-1)
    return (entropy / n.log()).where(n > 1, torch.nan)


def _relative(p: Tensor, q: Tensor) -> Tensor:
    """p ln(p / q), 0 where p is."""
    return torch.xlogy(p, p) - torch.xlogy(p, q)


def _over_items(term: Callable[[Tensor, Tensor], Tensor], p: Tensor, q: Tensor) -> Tensor:
    """The sum of a term over the real items of two distributions."""
    (a, real), (b, other) = _weights(p), _weights(q)
    if a.shape[-1] != b.shape[-1] or (real != other).any():
        raise ValueError("the two distributions have different items: NaN must mark the same absent items in both")
    return term(a, b).sum(-1).where(real.any(-1), torch.nan)


def _weights(p: Tensor) -> tuple[Tensor, Tensor]:
    """Weights in float64 with absent items at 0, and which items are real."""
    real = ~p.isnan()
    weights = p.double().masked_fill(~real, 0)
    if not (weights.isfinite() & (weights >= 0)).all():
        raise ValueError("weights of a distribution must be finite and not negative: normalise the scores first")
    return weights, real


def class_log_odds(logits: Tensor, label: Tensor) -> Tensor:
    """log p_c / (1 − p_c) of a class, [example], float64: z_c − log Σ of the others' exp."""
    place, z = label[:, None], logits.double()
    return z.gather(-1, place)[:, 0] - z.scatter(-1, place, -torch.inf).logsumexp(-1)
