"""Betting: is a mean above or below a value? Asked after every text, as often as one likes, with one error for all.

An interval for a fixed number of texts breaks its word if one looks, and asks more texts where it is not settled. A bet
does not (Waudby-Smith & Ramdas 2024). With y_i in [0, 1], somebody who doubts that the mean is at most m starts with a
wealth of 1 and stakes λ_i on every text,

    wealth = Π_i (1 + λ_i (y_i − m)),   λ_i = clip((μ − m) / (σ² + (μ − m)²), 0, ¾ / m),

μ and σ² of the texts before i, which start as one text with mean ½ and variance ¼. If the mean is m or less, wealth
ever reaches 1/α with probability α at most (Ville 1939): where it does, "at most m" is rejected for good. That a mean
is at least m is doubted alike, with 1 − y and 1 − m. All m that are not rejected are the confidence sequence: it holds
at all numbers of texts at once.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from exegete.measures.statistics import Interval

STEPS = 1000  # of the grid on which a mean is looked for
TOGETHER = 1 << 21  # bets that are held in memory
CAP = 0.75  # of what would lose all wealth on one text


class Bets:
    """Values in the order in which they came, [text], within [low, high]; what is no number is no text."""

    def __init__(self, values: Tensor, low: float = -1.0, high: float = 1.0) -> None:
        self.at_texts = values.detach().double().cpu()  # NaN where a text says nothing
        self.undefined = int(self.at_texts.isnan().sum())
        self.values = self.at_texts[~self.at_texts.isnan()]
        self.low, self.high = low, high
        self._share = ((self.values - low) / (high - low)).clamp(0.0, 1.0)

    @property
    def mean(self) -> float:
        """Of all texts so far."""
        return self.values.mean().item() if len(self.values) else math.nan

    def rejects_at_most(self, value: float, alpha: float) -> bool:
        """Whether "the mean is at most this" is rejected for good."""
        return bool(_most_wealth(self._share, self._scaled(value)) >= -math.log(alpha))

    def rejects_at_least(self, value: float, alpha: float) -> bool:
        """Whether "the mean is at least this" is rejected for good."""
        return bool(_most_wealth(1 - self._share, 1 - self._scaled(value)) >= -math.log(alpha))

    def interval(self, alpha: float) -> Interval:
        """The confidence sequence at this number of texts; each end misses, ever, with probability α at most."""
        n = len(self.values)
        if n == 0:
            return Interval(math.nan, math.nan, math.nan, 0, self.undefined)
        low, high = _end(self._share, alpha), 1 - _end(1 - self._share, alpha)
        wide = self.high - self.low
        return Interval(self.mean, self.low + wide * low, self.low + wide * high, n, self.undefined)

    def _scaled(self, value: float) -> Tensor:
        return torch.tensor([(value - self.low) / (self.high - self.low)], dtype=torch.float64)


def _end(share: Tensor, alpha: float) -> float:
    """The largest m of a grid such that "at most m" is rejected, and with it all that is less; 0 where nothing is."""
    grid = _grid()
    parts = grid.split(max(1, TOGETHER // max(1, len(share))))
    rejected = (torch.cat([_most_wealth(share, some) for some in parts]) >= -math.log(alpha)).long()
    count = int(rejected.cumprod(0).sum())
    return float(grid[count - 1]) if count else 0.0


@lru_cache(1)
def _grid() -> Tensor:
    return torch.arange(1, STEPS, dtype=torch.float64) / STEPS


def _most_wealth(share: Tensor, at_most: Tensor) -> Tensor:
    """The logarithm of the most wealth that ever was, of everybody who doubts that the mean is at most m: [m]."""
    if len(share) == 0:
        return torch.zeros_like(at_most)
    mean, variance = _before(share)
    m = at_most.clamp(1e-9, 1.0)[:, None]
    above = mean - m  # [m, text]
    stake = (above / (variance + above.square())).clamp(min=0.0).minimum(CAP / m)
    wealth: Tensor = (stake * (share - m)).log1p().cumsum(-1).amax(-1)
    return wealth.clamp(min=0.0)


def _before(share: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the texts before each, [text]; at first ½ and ¼, as if a text had been there."""
    count = torch.arange(1, len(share) + 1, dtype=torch.float64)
    mean = (0.5 + share.cumsum(0)) / (count + 1)
    variance = (0.25 + (share - mean).square().cumsum(0)) / (count + 1)
    first = share.new_tensor([0.5]), share.new_tensor([0.25])
    return torch.cat([first[0], mean[:-1]]), torch.cat([first[1], variance[:-1]])
