"""Rank correlation: one batched Kendall against a loop over scipy, on as many pairs of lists as SST has sentences."""

import sys
import time
from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor

from common import SMALL, below
from exegete.measures.rank import kendall

SENTENCES = 100 if SMALL else 1821
BAR = 20.0


def lists(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Two score lists [sentence, word], NaN after the last word, and the lengths: 2 to 50 words, 19 on average."""
    generator = torch.Generator().manual_seed(seed)
    length = (19 + 9.3 * torch.randn(SENTENCES, generator=generator)).round().long().clamp(2, 50)
    absent = torch.arange(50) >= length[:, None]
    first, second = torch.rand(2, SENTENCES, 50, generator=generator).argsort(-1).double()  # scipy ties no near ones
    return first.masked_fill(absent, torch.nan), second.masked_fill(absent, torch.nan), length


def one_by_one(first: Tensor, second: Tensor, length: Tensor) -> Tensor:
    """τ and p, [2, sentence], by scipy."""
    rows = zip(first.numpy(), second.numpy(), length.tolist(), strict=True)
    results = [stats.kendalltau(a[:n], b[:n]) for a, b, n in rows]
    return torch.tensor([(r.statistic, r.pvalue) for r in results], dtype=torch.float64).T


def batched(first: Tensor, second: Tensor) -> Tensor:
    """The same by exegete, which also gives the attainable maximum and γ."""
    result = kendall(first, second)
    return torch.stack([result.tau, result.p])


def timed(work: Callable[[], Tensor], repeats: int) -> tuple[Tensor, float]:
    """The result and the shortest of some times, in seconds."""
    times = []
    result = work()
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return result, min(times)


def main() -> None:
    torch.set_num_threads(1)
    first, second, length = lists()
    theirs, slow = timed(lambda: one_by_one(first, second, length), 3)
    ours, fast = timed(lambda: batched(first, second), 20)
    tau, p = (ours - theirs).abs().amax(1).tolist()
    print(
        f"kendall tau with p, {SENTENCES} pairs, mean length {length.double().mean():.1f}:"
        f"   scipy loop {slow * 1e3:7.1f} ms   batched {fast * 1e3:6.2f} ms"
        f"   ratio {slow / fast:5.1f}x   max |difference| tau {tau:.0e}, p {p:.0e}"
    )
    if below(slow / fast, BAR) or tau > 1e-9:
        sys.exit("rank correlation: below the bar, or other results")


if __name__ == "__main__":
    main()
