"""Resampling: sums over samples of sentences with replacement, for numbers that are made of sums (Efron 1979).

BLEU and alignment error rate are no means over sentences, but functions of sums over them. How often each sentence is
drawn in each sample, times the counts of the sentences, gives the sums of all samples at once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.measures.statistics import VALUES


@dataclass(frozen=True)
class Resample:
    """`draws` samples of n sentences with replacement; the same n, draws and seed are the same samples."""

    n: int
    draws: int = 2000
    seed: int = 0

    def sums(self, counts: Tensor) -> Tensor:
        """The sums of every sample: [sentence, count] -> [draw, count], float64."""
        generator = torch.Generator().manual_seed(self.seed)
        sums = torch.empty(self.draws, counts.shape[1], dtype=torch.float64)
        values = counts.double()
        for some in torch.split(sums, max(1, VALUES // self.n)):  # views, filled in place
            picked = torch.randint(self.n, (len(some), self.n), generator=generator)
            times = torch.zeros(len(some), self.n, dtype=torch.float64)
            times.scatter_add_(1, picked, torch.ones_like(times))  # how often each sentence is in each sample
            torch.matmul(times, values, out=some)
        return sums


def percentiles(drawn: Tensor, level: float) -> tuple[float, float]:
    """The bounds that hold the middle of the samples: [draw]; samples without a value are left out."""
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = drawn[~drawn.isnan()].quantile(tails).tolist()
    return low, high
