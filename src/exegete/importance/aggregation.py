"""Aggregation: one number for a word from those of its pieces, for a sentence from those of its words.

How it is done changes rankings, so it is never implied: `aggregate` names the way, `ranking` what words are ranked by.
"""

from typing import Literal

import torch
from torch import Tensor

AggregationRule = Literal["sum", "mean", "max", "l2"]


def aggregate(values: Tensor, owner: Tensor, how: AggregationRule) -> Tensor:
    """One value per group from the values of its members.

    `values` [batch, token] are NaN where there is none, `owner` [batch, token] is the group of a token or −1.

    - `sum` keeps completeness: what added up to a difference of predictions still does. For saliency that shares out a
      prediction (integrated gradients, LRP, Shapley values), and for attention, whose weights share out 1.
    - `mean` doesn't favour groups with many members; it breaks completeness. For comparing sentences of unequal length.
    - `max` is the member that speaks loudest, with its sign (the positive one of two that are equally loud). For
      asking whether anything in a group mattered.
    - `l2` is √Σv²: the size of a group's vector of scores, without a sign. For sensitivity (gradient norms): the norm
      of the gradient with respect to all pieces together is the L2 norm of theirs.
    """  # [batch, group], NaN for groups without a value
    inside = (owner >= 0) & ~values.isnan()
    groups = int(owner.max()) + 1 if owner.numel() else 0
    place = torch.where(inside, owner, groups)  # all that is in no group goes to one more, which is cut off
    filled = torch.where(inside, values, 0)
    count = _scattered(inside.to(values.dtype), place, groups, "sum")
    if how == "max":
        high, low = (_scattered(values, place, groups, most) for most in ("amax", "amin"))
        result = torch.where(high >= -low, high, low)
    elif how == "l2":
        result = _scattered(filled.square(), place, groups, "sum").sqrt()
    else:
        result = _scattered(filled, place, groups, "sum") / (count if how == "mean" else 1)
    return torch.where(count > 0, result, torch.nan)


def _scattered(values: Tensor, place: Tensor, groups: int, reduce: str) -> Tensor:
    """Values reduced by place, [batch, token] to [batch, group]."""
    out = values.new_zeros(values.shape[0], groups + 1)
    return out.scatter_reduce(1, place, values, reduce, include_self=reduce == "sum")[:, :groups]


def ranking(values: Tensor, by: Literal["signed", "magnitude"]) -> Tensor:
    """What words are ranked by: the signed score (first what speaks most for the class) or |score| (what matters)."""
    return values if by == "signed" else values.abs()
