"""Statistics that don't mislead: a mean, its interval, the number of values behind it, and how many had none.

What varies decides the interval. Over examples of one model: the bootstrap. Over seeds, of which there are few:
Student's t with n − 1 degrees of freedom, because the bootstrap's intervals over 3 seeds hold the truth 73 times in
100, not 95. Over both: `nested_mean`, or `crossed_mean` where all seeds are tested on the same examples. NaN marks an
undefined value; it is counted and left out.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from scipy import special
from torch import Tensor

# Resampled values held at a time.
VALUES = 1 << 20
# Draws times examples up to which samples are kept for the next mean over as many examples, and how often: one table of
# a paper has dozens of means over few numbers of examples, and drawing takes most of the time.
KEPT, TIMES = 1 << 22, 24


class Interval(NamedTuple):
    """A mean and where the true one lies with the probability asked for; NaN where there are too few values to say."""

    mean: float
    low: float
    high: float
    n: int  # values behind the mean
    undefined: int  # values left out


def bootstrap_mean(values: Tensor, level: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """The mean over examples, and the percentiles of the means of `draws` samples with replacement (Efron 1979)."""
    defined, undefined = _defined(values)
    n = len(defined)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, undefined)
    means = _resampled_means(defined, draws, seed)
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = means.quantile(tails).tolist()
    return Interval(defined.mean().item(), low, high, n, undefined)


def paired_difference(a: Tensor, b: Tensor, level: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """The mean of a − b over examples that both were measured on, bootstrapped; undefined where either is."""
    if a.shape != b.shape:
        raise ValueError(f"paired values come in equal numbers, not {list(a.shape)} and {list(b.shape)}")
    return bootstrap_mean(a.detach().double() - b.detach().double(), level, draws, seed)


def t_interval(values: Tensor, level: float = 0.95) -> Interval:
    """The mean over seeds ± t_{n−1} s/√n (Student 1908); one seed has no interval."""
    defined, undefined = _defined(values)
    n = len(defined)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, undefined)
    mean = defined.mean().item()
    half = _t(n - 1, level) * defined.std().item() / math.sqrt(n) if n > 1 else math.nan
    return Interval(mean, mean - half, mean + half, n, undefined)


def nested_mean(values_by_seed: Sequence[Tensor], level: float = 0.95) -> Interval:
    """The mean over seeds of each seed's mean over its own examples, with a t-interval over the seeds' means.

    Every seed has examples of its own (its own split, say), one tensor [example] each. The seeds' means vary with the
    seed and with the draw of its examples, so their spread holds both: the interval covers the mean over new seeds and
    new examples at its nominal rate (0.95 in simulation, 3 seeds). n counts values; a seed without any is left out, and
    one seed has no interval.
    """
    parts = [_defined(values) for values in values_by_seed]
    means = torch.tensor([defined.mean() for defined, _ in parts if len(defined)], dtype=torch.float64)
    over_seeds = t_interval(means, level)
    return over_seeds._replace(n=sum(len(defined) for defined, _ in parts), undefined=sum(left for _, left in parts))


def crossed_mean(values: Tensor, level: float = 0.95) -> Interval:
    """The mean over seeds and examples where every seed is tested on the same examples: [seed, example].

    The seeds then share what is particular to the examples, which the spread of their means doesn't show. With the mean
    squares MS of a two-way layout without replication, S seeds and N examples, the two sources are added, each with its
    own degrees of freedom (after Banerjee 1960, who adds means of unequal variance so and never covers too little):

        half-width² = [max(t²_{S−1} MS_seed, t²_{N−1} MS_residual) + t²_{N−1} max(0, MS_example − MS_residual)] / (S N)

    In simulation it covers 0.95 to 0.99 with 3 or 5 seeds, whichever source is the larger. An example that is undefined
    under one seed is left out under all.
    """
    complete = values.detach().double()[:, ~values.isnan().any(0)]
    n, undefined = complete.numel(), values.numel() - complete.numel()
    mean = complete.mean().item() if n else math.nan
    half = _crossed_half_width(complete, level) if n and min(complete.shape) > 1 else math.nan
    return Interval(mean, mean - half, mean + half, n, undefined)


def _crossed_half_width(values: Tensor, level: float) -> float:
    seeds, examples = values.shape
    by_seed, by_example = values.mean(1, keepdim=True), values.mean(0, keepdim=True)
    residual = values - by_seed - by_example + values.mean()
    ms_seed = examples * by_seed.var().item()
    ms_example = seeds * by_example.var().item()
    ms_residual = residual.square().sum().item() / ((seeds - 1) * (examples - 1))
    # Seeds with nearly equal means may be luck: what they share with the residual is expected in MS_seed too.
    of_seeds = max(_t(seeds - 1, level) ** 2 * ms_seed, _t(examples - 1, level) ** 2 * ms_residual)
    of_examples = _t(examples - 1, level) ** 2 * max(0.0, ms_example - ms_residual)
    return math.sqrt((of_seeds + of_examples) / values.numel())


def _t(df: int, level: float) -> float:
    """How many standard errors Student's t needs on either side for the level."""
    return float(special.stdtrit(df, (1 + level) / 2))


def clip_interval(interval: Interval, bound: float) -> Interval:
    """An interval cut to [−bound, bound]: few seeds give t-intervals beyond what is possible."""
    low, high = (v if math.isnan(v) else min(max(v, -bound), bound) for v in (interval.low, interval.high))
    return interval._replace(low=low, high=high)


def _defined(values: Tensor) -> tuple[Tensor, int]:
    """The values that are not NaN, in float64, and the number of those that are."""
    if values.dim() != 1:
        raise ValueError(f"give one value per example, [example], not {list(values.shape)}")
    defined = values.detach().double()
    defined = defined[~defined.isnan()].cpu()
    return defined, len(values) - len(defined)


def _resampled_means(values: Tensor, draws: int, seed: int) -> Tensor:
    """The means of `draws` samples with replacement, [draw], a few samples at a time."""
    n = len(values)
    if draws * n > KEPT:
        return torch.cat([values[picked].mean(1) for picked in _samples(n, draws, seed)])
    counts = _counts(n, draws, seed).split(max(1, VALUES // n))
    return torch.cat([some.double() @ values for some in counts]) / n


def _samples(n: int, draws: int, seed: int) -> Iterator[Tensor]:
    """Which of n examples every sample has, [draw, n], a few samples at a time."""
    generator = torch.Generator().manual_seed(seed)
    for size in torch.arange(draws).split(max(1, VALUES // n)):
        yield torch.randint(n, (len(size), n), generator=generator)


@lru_cache(TIMES)
def _counts(n: int, draws: int, seed: int) -> Tensor:
    """How often every sample has each of n examples, [draw, n]. One byte is enough for it.

    A count beyond 255 needs n > 255, and has then a probability below 1 in 255!: sums would not be n.
    """
    found = []
    for picked in _samples(n, draws, seed):
        place = picked + n * torch.arange(len(picked))[:, None]
        found.append(place.flatten().bincount(minlength=place.numel()).to(torch.uint8).view_as(place))
    return torch.cat(found)
