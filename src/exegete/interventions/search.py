"""Search: attention as far as possible from a model's own, with the same prediction (Jain & Wallace 2019, section 4.3).

For every text K candidates a^k = softmax(x^k), from x = 3 · N(0, 1), after 500 steps of Adam-AMSGrad down

    f = Σ_k [ −JSD(a^k, α) + 500 · max(0, d_k − 0.01) ] − (1/K²) Σ_k,k' JSD(a^k, a^k')

d_k is how far the prediction under a^k is from that under α: |Δp| for two classes, which is the total variation
distance, and Σ_c |Δp_c| for more, which is twice that. Nothing but the weights changes
(exegete.models.openings). With a linear decoder the gradient has a closed form (exegete.interventions.ascent); through
any other, and through whole passes of a model, it is differentiated. With several heads every one has log-weights of
its own, and JSD is the mean over heads.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from exegete.base.errors import UsageError
from exegete.base.noise import normal, stable_seed
from exegete.interventions.ascent import ABSENT, BETAS, EPS, Climb, Rates, Slopes
from exegete.models.openings import Opened

PURPOSE = stable_seed("adversary")
ROOM = 1 << 16  # log-weights that climb together: what stays in a core's cache
TINY = 1e-30  # keeps ln 0 out: 0 · ln TINY is 0
BLOCK = 64  # one-hot weights that are decoded at a time
LANES = 32  # texts are filled up to a multiple of what the widest vector instructions take at a time


@dataclass(frozen=True)
class Search:
    """How adversaries are searched for; the defaults are the paper's."""

    count: int = 5  # K
    steps: int = 500
    lr: float = 0.01
    tolerance: float = 0.01  # of the prediction's change, while searching
    strength: float = 500.0  # of the penalty beyond it
    spread: float = 3.0  # of the first log-weights
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1 or self.steps < 1:
            raise UsageError("a search for adversaries needs a count and a number of steps of at least 1")
        if not (self.lr > 0 and self.tolerance >= 0 and self.strength >= 0 and self.spread >= 0):
            raise UsageError("a search for adversaries needs lr > 0, and tolerance, strength and spread of at least 0")

    @property
    def rates(self) -> Rates:
        """What a climb needs of it."""
        return Rates(self.lr, self.tolerance, self.strength)


class Adversaries(NamedTuple):
    """The K candidates of every text, in float64; 0 on masked keys."""

    weights: Tensor  # [batch, candidate, head, key]
    tvd: Tensor  # [batch, candidate], of the predictions under these and under the original weights
    jsd: Tensor  # [batch, candidate], of these and the original weights, the mean over heads

    def best(self, epsilon: float) -> Tensor:
        """Which candidate has the largest JSD of those with TVD ≤ ε; −1, the original, where there is none: [batch]."""
        jsd = self.jsd.where(self.tvd <= epsilon, -1)
        return torch.where(jsd.amax(1) > 0, jsd.argmax(1), -1)


def find(texts: Opened, search: Search) -> Adversaries:
    """Adversaries of the texts of one batch."""
    return find_each([texts], search)[0]


@torch.no_grad()
def find_each(pools: Sequence[Opened], search: Search, dtype: torch.dtype = torch.float32) -> list[Adversaries]:
    """Adversaries of many batches, fastest from the shortest texts to the longest; `dtype` is that of the search.

    Steps don't depend on the texts beside, so that batches only matter for speed.
    """
    climbed = iter(_climbed([pool for pool in pools if pool.values is not None], search, dtype))
    return [_judged(pool, _descended(pool, search) if pool.values is None else next(climbed)) for pool in pools]


@torch.no_grad()
def watch_search(texts: Opened, search: Search, every: int) -> Iterator[tuple[int, Adversaries]]:
    """A search of one batch, looked at every so many steps: the steps that are done, and its candidates so far.

    The last are those of `find`.
    """
    steps = _descent(texts, search) if texts.values is None else _climb(texts, search)
    for done, x in enumerate(steps, start=1):
        if done % every == 0 or done == search.steps:
            yield done, _judged(texts, x)


def objective(weights: Tensor, original: Tensor, p: Tensor, own: Tensor, search: Search) -> Tensor:
    """f of every text, [batch].

    Weights [batch, candidate, head, key] with the probabilities p under them [batch, candidate, class]; original
    weights [batch, head, key] with the model's own probabilities [batch, class].
    """
    heads, count = looking(original), weights.shape[1]
    between = _jsd(weights[:, :, None], weights[:, None], heads[:, None, None])  # [batch, candidate, candidate]
    far = _jsd(weights, original[:, None], heads[:, None])  # [batch, candidate]
    over = (_distance(p, own[:, None]) - search.tolerance).clamp(min=0)
    return (search.strength * over - far).sum(1) - between.sum((1, 2)) / count**2


def first_log_weights(mask: Tensor, ids: Tensor, search: Search, heads: Tensor | None = None) -> Tensor:
    """Keyed normal numbers times the spread, [batch, candidate, head, key]; masked keys are as good as −∞.

    Heads [batch, head] are those that look at anything; one, unless given. Like keys they are counted among their own,
    so that neither padded keys nor padded queries change anything.
    """
    key = mask.long().cumsum(-1)[:, None, None]
    heads = mask.new_ones(len(mask), 1) if heads is None else heads
    number = (heads.long().cumsum(-1) - 1).clamp(min=0)[:, None, :, None]
    seeds = [PURPOSE, *(stable_seed("adversary", head) for head in range(1, heads.shape[1]))]
    candidate = torch.arange(search.count, device=ids.device).view(1, -1, 1, 1)
    purpose = torch.tensor(seeds, device=ids.device)[number]  # [batch, 1, head, 1]
    drawn = normal(search.seed, purpose, ids.view(-1, 1, 1, 1), candidate, key)
    return (search.spread * drawn).masked_fill(~mask[:, None, None], ABSENT)


def _slopes(pool: Opened) -> tuple[Tensor, Tensor]:
    """What a linear decoder makes of a weight at each key [batch, key, class], and of none at all [batch, class].

    It is asked with one-hot weights: what it does to weights beside multiplying them with W h_t is then in the slopes.
    """
    batch, keys = pool.mask.shape
    bias = pool.logits(torch.zeros(batch, 1, 1, keys, device=pool.mask.device))
    one_hot = torch.eye(keys, device=pool.mask.device)[:, None].split(BLOCK)
    return torch.cat([pool.logits(some.expand(batch, -1, -1, -1)) - bias for some in one_hot], 1), bias[:, 0]


def _judged(pool: Opened, x: Tensor) -> Adversaries:
    """Log-weights [batch, candidate, head, key] as adversaries, measured in float64."""
    mask, original = pool.mask[:, None, None], pool.weights[:, None]
    weights = x.double().masked_fill(~mask, ABSENT).softmax(-1) * mask
    logits = pool.logits(torch.cat([original, weights], 1)).softmax(-1)
    tvd = (logits[:, 1:] - logits[:, :1]).abs().sum(-1) / 2
    return Adversaries(weights, tvd, _jsd(weights, original, looking(pool.weights)[:, None]))


def looking(weights: Tensor) -> Tensor:
    """Which heads look at anything, [..., head]: where queries count as heads, some are padding."""
    return (weights > 0).any(-1)


def _jsd(p: Tensor, q: Tensor, heads: Tensor) -> Tensor:
    """½ KL(p, m) + ½ KL(q, m) over keys, m = (p + q)/2, the mean over these heads: [..., head, key] -> [...].

    Its gradient is finite at 0, too.
    """
    m = (p + q) / 2
    apart = (_p_ln_p(p) + _p_ln_p(q) - 2 * _p_ln_p(m)).sum(-1).clamp(min=0) / 2
    return (apart * heads).sum(-1) / heads.sum(-1).clamp(min=1)


def _p_ln_p(p: Tensor) -> Tensor:
    return p * p.clamp(min=TINY).log()


def _distance(p: Tensor, q: Tensor) -> Tensor:
    """d: the total variation distance for two classes, twice that for more."""
    return (p - q).abs().sum(-1) / (2 if p.shape[-1] == 2 else 1)


def _descended(pool: Opened, search: Search) -> Tensor:
    """Log-weights after the search, by automatic differentiation."""
    return deque(_descent(pool, search), maxlen=1)[0]


def _descent(pool: Opened, search: Search) -> Iterator[Tensor]:
    """Log-weights after every step, by automatic differentiation, for any decoder and any pass."""
    native, mask = pool.native(), pool.mask[:, None, None]
    dtype = native.own.dtype
    original = pool.weights.to(dtype)
    own = pool.logits(original[:, None])[:, 0].softmax(-1).to(dtype)
    x = first_log_weights(pool.mask, pool.ids, search, looking(pool.weights)).to(dtype).requires_grad_()
    adam = torch.optim.Adam([x], lr=search.lr, betas=BETAS, eps=EPS, amsgrad=True)
    for _ in range(search.steps):
        with torch.enable_grad():
            weights = x.softmax(-1) * mask
            p = native.logits(weights).softmax(-1)
            (x.grad,) = torch.autograd.grad(objective(weights, original, p, own, search).sum(), x)
        adam.step()
        yield x.detach()


def _climbed(pools: Sequence[Opened], search: Search, dtype: torch.dtype) -> list[Tensor]:
    """Log-weights after the search, for linear decoders: [batch, candidate, 1, key] of every pool."""
    problems = [_problem(pool, search) for pool in pools]
    found = [torch.empty_like(problem[0]) for problem in problems]
    for group in _groups([(len(x), x.shape[-1]) for x, *_ in problems], search.count):
        parts = [[tensor[some] for tensor in problems[place]] for place, some in group]
        climb = _side_by_side(parts, search, dtype)
        for _ in range(search.steps):
            climb.step()
        start = 0
        for place, some in group:
            rows, width = some.stop - some.start, found[place].shape[-1]
            found[place][some] = climb.x[:, :width, start : start + rows].permute(2, 0, 1).double()
            start += rows
    return [x[:, :, None] for x in found]


def _climb(pool: Opened, search: Search, dtype: torch.dtype = torch.float32) -> Iterator[Tensor]:
    """Log-weights after every step, of one pool whose texts climb together."""
    problem = _problem(pool, search)
    climb, (rows, _, width) = _side_by_side([problem], search, dtype), problem[0].shape
    for _ in range(search.steps):
        climb.step()
        yield climb.x[:, :width, :rows].permute(2, 0, 1).double()[:, :, None]


def _problem(pool: Opened, search: Search) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """First log-weights [batch, candidate, key], original weights, values [batch, output, key], bias, probability."""
    values, bias = _slopes(pool)
    values = values.masked_fill(~pool.mask[..., None], 0).mT
    own = pool.own.softmax(-1)
    if values.shape[1] == 2:
        values, bias, own = values[:, 1:] - values[:, :1], bias[:, 1:] - bias[:, :1], own[:, 1:]
    return first_log_weights(pool.mask, pool.ids, search)[:, :, 0], pool.weights[:, 0], values, bias, own


def _groups(sizes: Sequence[tuple[int, int]], count: int) -> Iterator[list[tuple[int, slice]]]:
    """Which texts climb together: (pool, rows), as many as there is room for; sizes are (texts, keys) of every pool."""
    group: list[tuple[int, slice]] = []
    taken = 0
    for place, (rows, width) in enumerate(sizes):
        start, room = 0, max(LANES, ROOM // (count * max(1, width)) // LANES * LANES)
        while start < rows:
            if taken >= room:
                yield group
                group, taken = [], 0
            end = min(rows, start + room - taken)
            group.append((place, slice(start, end)))
            taken, start = taken + end - start, end
    if group:
        yield group


def _side_by_side(parts: Sequence[Sequence[Tensor]], search: Search, dtype: torch.dtype) -> Climb:
    """Problems of several pools as one, texts last: keys and texts are filled up."""
    width = max(part[0].shape[-1] for part in parts)
    rows = -(-sum(len(part[0]) for part in parts) // LANES) * LANES

    def joined(which: int, fill: float, keys: bool = True) -> Tensor:
        padded = [pad(part[which], (0, width - part[which].shape[-1] if keys else 0), value=fill) for part in parts]
        whole = torch.cat(padded)
        whole = torch.cat([whole, whole.new_full((rows - len(whole), *whole.shape[1:]), fill)])
        return whole.movedim(0, -1).to(dtype).contiguous()

    slopes = Slopes(joined(2, 0), joined(3, 0, keys=False), joined(4, 0, keys=False))
    return Climb(joined(0, ABSENT), joined(1, 0), slopes, search.rates)
