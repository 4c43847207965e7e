"""Adversary search, K = 5 and 500 steps: the gradient in closed form against autograd through whole states.

The literature's way: 32 texts a batch, padded; weights [text, K, word] multiply states [text, K, word, size]; autograd;
Adam with AMSGrad. It is measured on every so many batches, evenly over the lengths, and scaled by the number of words;
an argument sets how many (1: all of them). Quality: mean ε-max JSD on the same texts, ε = 0.01 and 0.05.
"""

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from common import SMALL, below, seconds
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.interventions.search import Adversaries, Search, find_each
from exegete.models.ours.classifier import Classifier
from trained import Read, decoded, read, trained

BAR = 20.0
CLOSE = 0.05 if SMALL else 0.01  # of the mean ε-max JSD
EPSILONS = (0.01, 0.05)
EVERY = 3
SMOOTH = 1e-10  # in logarithms


def jsd(p: Tensor, q: Tensor) -> Tensor:
    """With smoothed logarithms, over the last dimension."""
    m = (p + q) / 2
    terms = p * ((p + SMOOTH).log() - (m + SMOOTH).log()) + q * ((q + SMOOTH).log() - (m + SMOOTH).log())
    return terms.sum(-1) / 2


def literature(model: Classifier, batch: Read, search: Search) -> Adversaries:
    """One batch."""
    torch.manual_seed(int(batch.batch.ids[0]))  # not the same noise for all batches
    size = (len(batch.members), search.count, batch.mask.shape[1])
    x = (search.spread * torch.randn(size)).requires_grad_()
    states, own, mask = batch.states[:, None], batch.weights[:, None], batch.mask[:, None]
    adam = torch.optim.Adam([x], lr=search.lr, amsgrad=True)
    for _ in range(search.steps):
        weights = x.masked_fill(~mask, -torch.inf).softmax(-1)
        change = (decoded(model, weights, states) - batch.p[:, None]).abs()
        far = jsd(weights, own)
        between = jsd(weights[:, :, None], weights[:, None]).mean((1, 2))
        loss = (search.strength * (change - search.tolerance).clamp(min=0) - far).sum() - between.sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        weights = x.masked_fill(~mask, -torch.inf).softmax(-1)
        change = (decoded(model, weights, states) - batch.p[:, None]).abs()
        return Adversaries(weights.double(), change.double(), jsd(weights.double(), own.double()))


def ours(pools: Sequence[Pooled], search: Search) -> list[Adversaries]:
    return find_each([pool.opened for pool in pools], search)


def farthest(members: Sequence[Sequence[int]], found: Sequence[Adversaries], epsilon: float) -> dict[int, float]:
    """ε-max JSD of every text; the model's own weights are a candidate too."""
    best = [of.jsd.where(of.tvd <= epsilon, 0).amax(1).clamp(min=0).tolist() for of in found]
    return {i: value for some, values in zip(members, best, strict=True) for i, value in zip(some, values, strict=True)}


def main(every: int = EVERY) -> None:
    model, data = trained()
    examples = data.split("test")
    pools, search = list(open_pooled(model, examples)), Search()
    batches = list(read(model, examples))
    sample = batches[every // 2 :: every]
    fast = seconds(lambda: ours(pools, search), 3)
    theirs: list[Adversaries] = []
    measured = seconds(lambda: theirs.extend(literature(model, batch, search) for batch in sample))
    scale = sum(map(len, examples)) / sum(len(examples[i]) for batch in sample for i in batch.members)
    slow, ratio = measured * scale, measured * scale / fast
    mine = ours(pools, search)
    said = (
        ""
        if every == 1
        else f" (measured: {measured:.1f} s on {len(sample)} of {len(batches)} batches, times {scale:.1f})"
    )
    print(f"adversaries, K = {search.count}, {search.steps} steps, {data.name} test ({len(examples):,} texts)")
    print(f"  literature        {slow:6.1f} s{said}")
    print(f"  exegete           {fast:6.2f} s  {ratio:5.1f}x  (bar {BAR:.0f}x)")
    worst = 0.0
    for epsilon in EPSILONS:
        a, b = (
            farthest([p.members for p in pools], mine, epsilon),
            farthest([b.members for b in sample], theirs, epsilon),
        )
        ours_mean, theirs_mean = (sum(of[i] for i in b) / len(b) for of in (a, b))
        worst = max(worst, abs(ours_mean - theirs_mean))
        print(
            f"  mean ε-max JSD at ε = {epsilon:g}: exegete {ours_mean:.4f}, literature {theirs_mean:.4f} (n = {len(b)})"
        )
    if below(ratio, BAR) or worst > CLOSE:
        sys.exit("adversaries: below the bar, or another quality")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
