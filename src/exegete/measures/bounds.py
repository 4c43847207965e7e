"""Bounds: intervals of means over texts that keep their word, also for few texts and for values that were not seen.

A sample of forty values close to 1 may have missed the one in thirty that lies far below, and with it the mean. Neither
percentiles of resampled means nor Student's t nor the bootstrap-t (exegete.measures.student) know of it: where few
values lie far off they miss up to three times as often as they say. What is known is a bound. The end of Learned-Miller
& Thomas (2019) asks for no more: with the values in order, z_(n+1) = bound, and u the n uniform numbers in order that
stand for the unknown probabilities of lying below each value,

    high = the (1 − α) quantile over u of   z_(n+1) − Σ_i u_(i) (z_(i+1) − z_(i)),

low likewise of −z. Of hits and misses it is the exact end of Clopper & Pearson (1934). Where values spread its arms are
1.3 (200 texts) to 1.7 times (40) as long as the others'. In simulation (`tools/simulations.py`) it never misses more
often than it says, so it is what tests that decide are judged by.

Values that are all 0 or 1 are a share, and have its exact interval: 20 of 20 is not [1, 1]. Only where nearly all are
0, an unseen −1 is as likely as the few 1 (of a difference of two right answers, say): these are bounded as above.

Every α is one-sided: low and high each miss with probability α.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from exegete.measures.proportions import clopper_pearson
from exegete.measures.statistics import Interval, clip_interval, crossed_mean

HITS = 10  # of hits and misses: so many say that none is negative
BEYOND = 50  # draws beyond each end
DRAWS = 4000  # at least


def bounded_mean(values: Tensor, alpha: float, bound: float = 1.0) -> Interval:
    """The mean of [seed, example], within ±bound, with both of its one-sided ends; NaN is no value.

    Over examples for one seed; over seeds and the examples that they share for several.
    """
    if len(values) > 1:
        return clip_interval(crossed_mean(values, 1 - 2 * alpha), bound)
    here = values[0].detach().double().cpu()
    own = here[~here.isnan()]
    n, undefined = len(own), len(here) - len(own)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, undefined)
    if is_share(own):
        low, high = clopper_pearson(int(own.sum()), n, 1 - 2 * alpha)
    else:
        low, high = -_above(-own, alpha, bound), _above(own, alpha, bound)
    return clip_interval(Interval(own.mean().item(), low, high, n, undefined), bound)


def is_share(values: Tensor) -> bool:
    """Whether values are hits and misses, with hits enough to say that none of them is negative."""
    hits = int((values == 1).sum())
    return hits >= HITS and hits + int((values == 0).sum()) == len(values)


def _above(values: Tensor, alpha: float, bound: float) -> float:
    """The upper end of the mean; without a bound there is none."""
    if math.isinf(bound):
        return math.inf
    placed = torch.cat([values.sort().values, values.new_tensor([bound])])
    drawn = bound - _ordered(len(values), draws(alpha)) @ placed.diff()
    return drawn.quantile(1 - alpha).item()


def draws(alpha: float) -> int:
    """How many samples an end needs."""
    return max(DRAWS, math.ceil(BEYOND / alpha))


@lru_cache(8)
def _ordered(n: int, count: int, seed: int = 0) -> Tensor:
    """Uniform numbers in order: [draw, n], the same for all that is asked of as many texts.

    Sums of exponential numbers, of one more of them all: what sorting gives, without it.
    """
    generator = torch.Generator().manual_seed(seed)
    steps = torch.empty(count, n + 1, dtype=torch.float64).exponential_(generator=generator).cumsum(-1)
    return steps[:, :-1] / steps[:, -1:]
