"""Bootstrap-t: intervals of means over texts that keep their word, also for few texts and skewed values.

Percentiles of resampled means are too narrow where values are skewed: they miss up to six times as often as they say.
The bootstrap-t (Efron 1982; Hall 1988) resamples what is studentised instead,

    t* = (mean* − mean) / se*,    low = mean − t*_(1 − α) se,    high = mean − t*_(α) se,

so that a sample whose large values are rare, and whose spread they decide, gets a longer arm on that side. It needs
values that vary. Where nearly all are one value (less than `OFF` are another), the sample says nothing of the rest but
how rare it is, and the interval is that of a bounded variable: with the share of this value at least p, exactly
(Clopper & Pearson 1934), the mean lies within p · value + (1 − p) · [−bound, bound].

Values that are all 0 or 1 are a share, and have its exact interval: 20 of 20 is not [1, 1]. Only where
nearly all are 0, an unseen −1 is as likely as the few 1 (of a difference of two right answers, say): these are bounded
as above, with the exact upper end.

Every α is one-sided: low and high each miss with probability α.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from exegete.measures.proportions import clopper_pearson
from exegete.measures.statistics import Interval, crossed_mean, within

OFF = 10  # values off the mode from which on they can be studentised
SAME = 1e-3  # values that agree to so much are one
BEYOND = 40  # resampled t beyond each end
DRAWS = 4000  # at least


def one_sided(values: Tensor, alpha: float, bound: float = 1.0) -> Interval:
    """The mean of [seed, example] with both of its one-sided ends; NaN is no value.

    Over examples for one seed; over seeds and the examples that they share for several.
    """
    if len(values) > 1:
        return within(crossed_mean(values, 1 - 2 * alpha), bound)
    here = values[0].detach().double().cpu()
    there = ~here.isnan()
    n, undefined = int(there.sum()), int((~there).sum())
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, undefined)
    own = here[there]
    if _is_share(own):
        low, high = clopper_pearson(int(own.sum()), n, 1 - 2 * alpha)
    else:
        low, high = _bounded(own, alpha, bound) if off_mode(own) < OFF else _studentised(here, alpha)
    return within(Interval(own.mean().item(), low, high, n, undefined), bound)


def _is_share(values: Tensor) -> bool:
    """Whether values are hits and misses, with hits enough to say that none of them is negative."""
    hits = int((values == 1).sum())
    return hits >= OFF and hits + int((values == 0).sum()) == len(values)


def off_mode(values: Tensor) -> int:
    """How many values are not the most frequent one.

    >>> off_mode(torch.tensor([1.0, 1.0, 0.5]))
    1
    """
    _, counts = (values / SAME).round().unique(return_counts=True)
    return len(values) - int(counts.max())


def _bounded(values: Tensor, alpha: float, bound: float) -> tuple[float, float]:
    """Where the mean of a bounded variable lies that is nearly always one value."""
    kinds, counts = (values / SAME).round().unique(return_counts=True)
    mode, count = float(kinds[counts.argmax()]) * SAME, int(counts.max())
    share = clopper_pearson(count, len(values), 1 - 2 * alpha)[0]
    return share * mode - (1 - share) * bound, share * mode + (1 - share) * bound


def _studentised(values: Tensor, alpha: float) -> tuple[float, float]:
    """By t*, over texts that have a value; the samples are those of all texts, so that they are the same for all."""
    there = ~values.isnan()
    counts = _counts(len(values), max(DRAWS, math.ceil(BEYOND / alpha)))
    kept = values.nan_to_num(0.0)
    sums = counts @ torch.stack([there.double(), kept, kept.square()], 1)  # [draw, 3]
    drawn = sums[(sums[:, 0] > 1)]
    n, total, squares = drawn.unbind(1)
    mean, own = total / n, values[there]
    error = ((squares / n - mean.square()).clamp(min=0) / (n - 1)).sqrt()
    spread = own.std().item() / math.sqrt(len(own))
    t = torch.where(error > 0, (mean - own.mean()) / error, torch.inf * (mean - own.mean()).sign())
    below, above = t.nan_to_num(0.0).quantile(torch.tensor([alpha, 1 - alpha], dtype=torch.float64)).tolist()
    return own.mean().item() - above * spread, own.mean().item() - below * spread


@lru_cache(4)
def _counts(n: int, draws: int, seed: int = 0) -> Tensor:
    """How often every sample has each of n texts: [draw, n]."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.zeros(draws, n, dtype=torch.float64)
    for some in counts.split(max(1, (1 << 20) // n)):
        picked = torch.randint(n, (len(some), n), generator=generator)
        some.scatter_add_(1, picked, torch.ones_like(picked).double())
    return counts
