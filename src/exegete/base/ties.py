"""Ties: scores that differ by rounding only are equal, so that no order hangs on a CPU.

Two words that a model treats alike get scores that differ in their last bits: sums are added in another order alone
than in a batch, and on another CPU. Whatever ranks words ranks them by `levels`. A row is sorted, and a new level
begins where the step to the next larger score is wider than rounding:

    s_(i+1) − s_(i) > 4·10⁻⁵ · max_j |s_j|         of scores
    s_(i+1) − s_(i) > 4·10⁻⁵ · s_(i+1)             of weights: all above 0, with the sum 1

A grid would have boundaries everywhere, and scores that lie on one would tie on one CPU and not on another; a step is
either far from the tolerance, as nearly all are, or not. Steps are chained: of three scores the outer two may be equal
through the one between them, or "equal" would not be transitive.

Two yardsticks, because errors are of two kinds. What is a difference of predictions or a sum of products loses digits
by cancellation, so its error is a share of the largest score: over 12 models and 14 importances up to 9·10⁻⁶ under any
kernels of torch, MKL and oneDNN, alone or in a batch, and 1.4·10⁻⁵ with random last bits (leave-one-out and occlusion;
4·10⁻⁶ for gradients). A softmax has no such loss, its weights are right to 1.2·10⁻⁶ of themselves, and peaked attention
orders its small weights as surely as its large ones: by the first yardstick 60 % of the words of a text with one
decisive word would tie. Sparse projections subtract a threshold, so rows with a 0 go by the first.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

ROUNDING = 4e-5  # two equal words may be off by 9e-6 each, to either side: twice that, and as much to spare
WHOLE = 1e-4  # how far from 1 the sum of weights may be


def levels(scores: Tensor) -> Tensor:
    """The level of every item of every row, 0, 1, … from the lowest, in float64; NaN is no item: [..., item] twice.

    >>> levels(torch.tensor([[0.5, 0.2, 0.5000001, float("nan")]])).tolist()
    [[1.0, 0.0, 1.0, nan]]
    """
    ascending, order = scores.detach().double().sort(-1)  # NaN last
    steps = ascending.diff(dim=-1) > ROUNDING * _yardstick(ascending)[..., 1:]  # NaN steps nowhere
    level = pad(steps.long().cumsum(-1), (1, 0))[..., : order.shape[-1]]  # a row without items has no first one either
    return torch.empty_like(level).scatter_(-1, order, level).double().masked_fill(scores.isnan(), torch.nan)


def _yardstick(ascending: Tensor) -> Tensor:
    """What rounding is a share of, for every item of sorted rows: itself among weights, else the largest of its row."""
    size = ascending.abs().where(ascending.isfinite(), 0.0)
    largest = pad(size, (1, 0)).amax(-1, keepdim=True)
    weights = ~(ascending <= 0).any(-1, keepdim=True) & ((size.sum(-1, keepdim=True) - 1).abs() < WHOLE)
    return torch.where(weights, size, largest)
