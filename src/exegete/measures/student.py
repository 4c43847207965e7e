"""Bootstrap-t: intervals of means over texts where values spread, shorter than bounded ones, for what informs.

It resamples what is studentised (Efron 1982; Hall 1988),

    t* = (mean* − mean) / se*,    low = mean − t*_(1 − α) se,    high = mean − t*_(α) se,

so that a sample whose large values are rare, and whose spread they decide, gets a longer arm on that side. It needs
values that vary. With fewer than `FEW` texts, or where nearly all are one value (less than `OFF` are another), the ends
are the bounded ones (exegete.measures.bounds), if there is a bound. Where a few lie far off and the others close
together, t* is too long instead: samples without these few have next to no spread. So each end is the nearer one of
both. What no text showed it does not know of: where one value in twenty lies far off, ends of 40 texts miss 2.7 times
as often as they say.

Every α is one-sided: low and high each miss with probability α.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from exegete.measures.bounds import bounded_mean, draws, is_share
from exegete.measures.statistics import Interval

FEW = 40  # texts that can be resampled
OFF = 10  # values off the mode from which on they can be studentised
SAME = 1e-3  # values that agree to so much are one


def one_sided(values: Tensor, alpha: float, bound: float = 1.0) -> Interval:
    """The mean of [seed, example], within ±bound, with both of its one-sided ends; NaN is no value."""
    safe = bounded_mean(values, alpha, bound)
    here = values[0].detach().double().cpu()
    own = here[~here.isnan()]
    unvaried = safe.n < FEW or is_share(own) or off_mode(own) < OFF
    if len(values) > 1 or safe.n < 2 or (unvaried and math.isfinite(bound)):
        return safe
    low, high = _studentised(here, alpha)
    return safe._replace(low=max(low, safe.low), high=min(high, safe.high))


def off_mode(values: Tensor) -> int:
    """How many values are not the most frequent one.

    >>> off_mode(torch.tensor([1.0, 1.0, 0.5]))
    1
    """
    _, counts = (values / SAME).round().unique(return_counts=True)
    return len(values) - int(counts.max())


def _studentised(values: Tensor, alpha: float) -> tuple[float, float]:
    """By t*, over texts that have a value; the samples are those of all texts, so that they are the same for all."""
    there = ~values.isnan()
    kept = values.nan_to_num(0.0)
    sums = _counts(len(values), draws(alpha)) @ torch.stack([there.double(), kept, kept.square()], 1)  # [draw, 3]
    drawn = sums[(sums[:, 0] > 1)]
    n, total, squares = drawn.unbind(1)
    mean, own = total / n, values[there]
    error = ((squares / n - mean.square()).clamp(min=0) / (n - 1)).sqrt()
    spread = own.std().item() / math.sqrt(len(own))
    t = torch.where(error > 0, (mean - own.mean()) / error, torch.inf * (mean - own.mean()).sign())
    below, above = t.nan_to_num(0.0).quantile(torch.tensor([alpha, 1 - alpha], dtype=torch.float64)).tolist()
    return own.mean().item() - above * spread, own.mean().item() - below * spread


@lru_cache(4)
def _counts(n: int, samples: int, seed: int = 0) -> Tensor:
    """How often every sample has each of n texts: [draw, n]."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.zeros(samples, n, dtype=torch.float64)
    for some in counts.split(max(1, (1 << 20) // n)):
        picked = torch.randint(n, (len(some), n), generator=generator)
        some.scatter_add_(1, picked, torch.ones_like(picked).double())
    return counts
