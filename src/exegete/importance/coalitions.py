"""Coalitions: which words stay, for the methods that fit a surrogate to many erased texts (LIME, KernelSHAP).

Both methods want averages over subsets of the T words of a text that depend on a subset's size alone: LIME draws the
number of removed words uniformly from 1 to T, KernelSHAP weighs size k in total by 1 / (k (T − k)). So they share one
design, and inside `sharing()` each of its texts is run once for both:

- all 2^T − 2 subsets other than the whole and the empty one, where the budget allows;
- otherwise all subsets of size 1 and T − 1, where the budget of 2T allows, and for the rest of it pairs of a subset and
  its complement: a size k from 2 … T − 2 with probability q(k) ∝ 1 / (k (T − k)), then the words uniformly;
- otherwise (T > budget / 2) only such pairs, with sizes from 1 … T − 1.

Each subset has a share such that Σ share · m(|z|) · g(z) is an unbiased estimate of Σ_k m(k) · mean of g over all
subsets of size k, for any m and g: 1 / C(T, k) where a size is complete, 1 / (2 pairs · q(k)) where it is drawn. A
smaller budget's pairs are the first ones of a larger budget.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.noise import uniform
from exegete.tasks.batching import Batch


class Coalitions(NamedTuple):
    """Subsets of words, drawn for every text on its own."""

    kept: Tensor  # [text, sample, token]: True on the words that stay
    share: Tensor  # [text, sample], 0 where a text needs fewer samples


class _Plan(NamedTuple):
    """What the samples of every text are; all [text, 1]."""

    words: Tensor  # T
    every: Tensor  # whether all subsets are taken
    single: Tensor  # how many of the samples are single words, kept or removed: 2T or 0
    pairs: Tensor  # how many pairs are drawn


def _plan(batch: Batch, samples: int) -> _Plan:
    words = batch.lengths[:, None]
    every = 2 ** words.clamp(max=40) - 2 <= samples
    single = torch.where((2 * words <= samples) & ~every, 2 * words, 0)
    return _Plan(words, every, single, torch.where(every, 0, (samples - single) // 2))


def coalitions(batch: Batch, samples: int, seed: int) -> Coalitions:
    """At most `samples` subsets of every text, by the design above, keyed by example and word."""
    plan, sample = _plan(batch, samples), torch.arange(samples, device=batch.ids.device)
    is_every = plan.every & (sample < 2 ** plan.words.clamp(max=40) - 2)
    is_single = sample < plan.single
    is_drawn = ~plan.every & ~is_single & (sample < plan.single + 2 * plan.pairs)
    drawn, share = _drawn(batch, plan, samples, seed)
    place = (batch.words.cumsum(-1) - 1)[:, None]  # [text, 1, token]
    bits = ((sample[:, None] + 1) >> place.clamp(0, 62)) & 1 == 1  # of the numbers 1 … 2^T − 2
    alone = (sample[:, None] // 2 == place) ^ (sample[:, None] % 2 == 1)  # one word stays, or all but it
    kept = torch.where(plan.every[..., None], bits, torch.where(is_single[..., None], alone, drawn))
    kept &= batch.words[:, None]
    complete = 1 / _binomial(plan.words, kept.sum(-1))
    return Coalitions(kept, torch.where(is_every | is_single, complete, torch.where(is_drawn, share, 0.0)))


def _drawn(batch: Batch, plan: _Plan, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pairs of subsets [text, sample, token] that start where the single words end, and their shares [text, sample]."""
    pair, share = _pairs(batch, plan, samples // 2, seed)
    after = torch.arange(samples, device=batch.ids.device) - plan.single  # [text, sample]
    number = after.div(2, rounding_mode="floor").clamp(0, pair.shape[1] - 1)
    subset = pair.take_along_dim(number[..., None], 1) ^ (after % 2 == 1)[..., None]
    return subset, share.take_along_dim(number, 1)


def _pairs(batch: Batch, plan: _Plan, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """The first subset of every pair [text, pair, token], and the share of both [text, pair]."""
    ids, number = batch.ids[:, None], torch.arange(count, device=batch.ids.device)
    least = torch.where(plan.single > 0, 2, 1)
    size = torch.arange(
        1, max(2, int(plan.words.max())), device=batch.ids.device
    )  # [size]: 1 … T − 1 of the longest text
    allowed = (size >= least) & (size <= plan.words - least)  # [text, size]
    q = torch.where(allowed, 1 / (size * (plan.words - size)).double(), 0.0)
    q /= q.sum(-1, keepdim=True)
    chosen = torch.searchsorted(q.cumsum(-1), uniform(seed, ids, number, -1))
    chosen = torch.minimum(chosen, plan.words - least - 1).clamp(min=0)  # where the sum rounds to just below 1
    word = batch.words.cumsum(-1) - 1
    order = uniform(seed, ids[..., None], number[:, None], word[:, None]).masked_fill(~batch.words[:, None], 2)
    last = order.sort(-1).values.gather(-1, chosen[..., None])  # the chosen + 1 words that come first are in
    return order <= last, 1 / (2 * plan.pairs * q.gather(-1, chosen))


def _binomial(n: Tensor, k: Tensor) -> Tensor:
    """C(n, k) in float64."""
    n, k = n.double(), k.double()
    return ((n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()).exp()
