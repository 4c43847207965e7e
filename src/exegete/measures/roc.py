"""ROC: the area under the curve with its interval: whether a model tells its classes apart, however rare they are.

A = P(score of a positive > score of a negative) + ½ P(equal). With the shares V_i of negatives below positive i and V_j
of positives above negative j, its variance is that of two means (DeLong, DeLong & Clarke-Pearson 1988):

    var A = Σ_i (V_i − A)² / (P (P − 1)) + Σ_j (V_j − A)² / (N (N − 1))

Few positives that happen to lie alike show no spread: so the interval holds ½, too, unless A is further from it than
unrelated scores get, whose variance is (P + N + 1) / (12 P N); and where A is 1, its lower end is that of a share of as
many hits as the rarer side has examples. With several classes it is the mean over classes, each against the rest; what
an example adds to all of them is added up before it is squared, and where all are 1, the lower end is the mean of those
of the classes, which share the error: one rare class does not take away what is known of the others.
"""

import math

import torch
from scipy import special
from torch import Tensor

from exegete.measures.proportions import clopper_pearson
from exegete.measures.statistics import Interval


def auc_interval(probabilities: Tensor, label: Tensor, level: float = 0.95) -> Interval:
    """Of [example, class] and the right classes; NaN where no class has examples beside examples of others."""
    n, classes = probabilities.shape
    share = probabilities.double().clamp(min=torch.finfo(torch.float64).tiny)
    rest = share @ (1 - torch.eye(classes, dtype=torch.float64))
    odds = (share.log() - rest.log()).float()  # what differs by rounding only is tied
    there = [c for c in (range(classes) if classes > 2 else [1]) if 0 < int((label == c).sum()) < n]
    if not there:
        return Interval(math.nan, math.nan, math.nan, 0, n)
    areas, added, by_chance = zip(*(_area(odds[:, c], label == c) for c in there), strict=True)
    area, k = sum(areas) / len(there), len(there)
    own = float((torch.stack(added).sum(0) / k).square().sum())
    z = float(special.ndtri((1 + level) / 2))
    low, high = max(0.0, area - z * math.sqrt(own)), min(1.0, area + z * math.sqrt(own))
    if own == 0 and area == 1:  # none of the fewest was seen below the others
        fewest = [min(int((label == c).sum()), int((label != c).sum())) for c in there]
        low = sum(clopper_pearson(hits, hits, 1 - (1 - level) / k)[0] for hits in fewest) / k
    if abs(area - 0.5) <= z * math.sqrt(sum(by_chance)) / k:
        low, high = min(low, 0.5), max(high, 0.5)
    return Interval(area, low, high, n, 0)


def _area(score: Tensor, positive: Tensor) -> tuple[float, Tensor, float]:
    """A, what every example adds to its error [example], and the variance of unrelated scores."""
    p, n = int(positive.sum()), int((~positive).sum())
    ranks = _mid_ranks(score)
    below = (ranks[positive] - _mid_ranks(score[positive])) / n  # shares of negatives
    above = 1 - (ranks[~positive] - _mid_ranks(score[~positive])) / p  # shares of positives
    area = float(below.mean())
    added = torch.zeros(len(score), dtype=torch.float64)
    added[positive] = (below - area) / math.sqrt(p * max(1, p - 1))
    added[~positive] = (above - area) / math.sqrt(n * max(1, n - 1))
    return area, added, (p + n + 1) / (12 * p * n)


def _mid_ranks(values: Tensor) -> Tensor:
    """From 1; equal values share their mean rank."""
    _, group, count = values.unique(return_inverse=True, return_counts=True)
    ranks: Tensor = (count.cumsum(0) - (count - 1) / 2).double()
    return ranks[group]
