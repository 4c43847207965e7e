"""Top-k rank correlation: do two lists agree on their k best items, and on the order of these?

Three coefficients that are +1 for equal lists, each with another idea of the rest: `fagin` (use this one), `bucket`,
and `legacy`, which is what the papers' code computes. None of them has its chance level at 0 for every k, so report
`chance` or `above_chance` beside them.

k is one number for all rows or one per row; a k beyond a row's length is its length, and a k below 1 gives NaN.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from exegete.base.noise import uniform
from exegete.measures.rank import tau_b
from exegete.measures.rows import above, by_row, count_pairs, pair_lists

TopK = int | Tensor  # one k, or [row]
Measure = Callable[[Tensor, Tensor, Tensor], Tensor]  # first, second, k -> [row]

# Rows of up to so many items get all the shuffles that are asked for.
SHORT = 20


def fagin(first: Tensor, second: Tensor, k: TopK, p: float = 0.5) -> Tensor:
    """τ = 1 − 2 K^(p) / K_max of the two top-k lists (Fagin, Kumar & Sivakumar 2003, section 3.1), in [−1, 1].

    A list orders its k best items and puts all others below them, unordered. K^(p) sums over the pairs of items that
    are in either list: 1 if the lists order the pair in opposite ways, p if just one of them leaves it unordered, else
    0. That is the paper's four cases, extended to equal scores, which leave a pair unordered too. Equal items that
    would overfill a list are all left out of it.

    K_max is K^(p) of the top k of an order and of its reverse, which share z = max(0, 2k − n) items:

        K_max = z(z−1)/2 + (k−z)² + 2z(k−z) + p(k−z)(k−z−1)

    (k² + p k(k−1), the paper's maximum, only while 2k ≤ n). So reversed orders give −1 for every k, and k = n gives
    Kendall's τ. Undefined where a list orders nothing: all of its items are equal, or more than k share the best score.
    """
    return by_row(lambda a, b, n, k: _fagin(a, b, n, k, p), first, second, _per_row(k, first))


def bucket(first: Tensor, second: Tensor, k: TopK, p: float = 0.5) -> Tensor:
    """1 − 2 × the mean penalty of the pairs that join an item of one top k to one of the other (Neely et al. 2021).

    Items of equal score share a bucket; a top k is the items of the k best buckets. Over all unordered pairs of
    different items, one from the first top k and one from the second: 1 if the full lists order them in opposite ways,
    p if just one of them ties them, else 0. Disjoint top k's give −1, and so chance is far below 0 for small k: about
    −0.9 for 2 of 20. One and the same single item gives +1.
    """
    return by_row(lambda a, b, n, k: _bucket(a, b, n, k, p), first, second, _per_row(k, first))


def legacy(first: Tensor, second: Tensor, k: TopK, p: float = 0.5) -> Tensor:
    """1 − 2D as the code of Jain & Wallace and Neely & Schouten computes it: unrelated lists score about +0.8.

    For comparison with their tables only.

        D = [½ (1 − τ_b of the z common items) z² + overtaken + 2p C(k−z, 2)] / |union|²

    overtaken being the pairs of a common item and one of a single list that scores higher there.

    Two faults: pairs of one item from each list (Fagin's case 3, the gravest) cost nothing, and the first term counts
    every pair twice while the others count it once. With fewer than two common items the first term is 0. Equal scores
    at the cut: the earlier items are taken (the papers' code leaves that to argpartition). Undefined where two or more
    common items have equal scores throughout one of the lists.
    """
    return by_row(lambda a, b, n, k: _legacy(a, b, n, k, p), first, second, _per_row(k, first))


def nonzeros(*scores: Tensor) -> Tensor:
    """The k of Neely & Schouten's "non-zero" columns: a row's fewest non-zero scores in any of the lists, [row]."""
    return torch.stack([((s != 0) & ~s.isnan()).sum(-1) for s in scores]).amin(0)


def chance(
    measure: Measure, first: Tensor, second: Tensor, k: TopK, ids: Tensor, *, draws: int = 100, seed: int = 0
) -> Tensor:
    """What unrelated lists score, [row]: the mean of the measure with second shuffled within its rows, `draws` times.

    n, k and the ties of both lists stay as they are. A shuffle depends on (seed, id of the row, draw, item) alone,
    whatever is in the same batch and wherever the padding is. The spread of a coefficient falls as 1/√n, so rows of
    more than 20 items need, and get, proportionally fewer shuffles. Draws without a value are left out; a row without
    any is NaN.
    """
    a, b, n = pair_lists(first, second)
    item, each_k = torch.arange(a.shape[1], device=a.device), _per_row(k, first)
    needed = (draws * SHORT / n.clamp(min=1)).ceil().clamp(1, draws)
    total, defined = torch.zeros(2, len(a), dtype=torch.float64, device=a.device)
    for draw in range(draws):
        row = (needed > draw).nonzero()[:, 0]
        keys = uniform(seed, ids[row, None], draw, item).masked_fill(item >= n[row, None], torch.inf)  # [row, item]
        value = measure(a[row], b[row].gather(1, keys.argsort(1)), each_k[row])
        total[row] += value.nan_to_num()
        defined[row] += (~value.isnan()).double()
    return torch.div(total, defined)  # 0/0 is NaN


def above_chance(value: Tensor, chance: Tensor) -> Tensor:
    """(value − chance) / (1 − chance): 0 for what unrelated lists score, 1 for equal lists (as Cohen 1960)."""
    return (value - chance) / (1 - chance)


def _per_row(k: TopK, first: Tensor) -> Tensor:
    """One whole k for every row, [row]."""
    each = torch.as_tensor(k, device=first.device)
    if each.is_floating_point() or each.dim() > 1 or (each.dim() == 1 and len(each) != len(first)):
        raise ValueError(f"k must be a whole number, or one for each of the {len(first)} rows")
    return each.long().expand(len(first))


def _at_least(x: Tensor, n: Tensor) -> Tensor:
    """How many items of its row score as high as an item, itself included, [row, item]."""
    ascending = x.masked_fill(x.isnan(), torch.inf).sort(1).values
    return n[:, None] - torch.searchsorted(ascending, x.masked_fill(x.isnan(), torch.inf))


def _levels(x: Tensor, n: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """A list's bucket order, [row, item], higher being better, all outside of the top k lowest; and who is inside."""
    at_least = _at_least(x, n)
    inside = (at_least <= k[:, None]) & ~x.isnan()
    levels = torch.where(inside, -at_least, -1 - n[:, None]).double()
    return levels.masked_fill(x.isnan(), torch.nan), inside


def _listed(inside: Tensor, *tables: Tensor) -> list[Tensor]:
    """Tables [row, item] reduced to the items that are in either list: only their pairs are ever looked at.

    Places without such an item hold NaN, or False.
    """
    width = int(inside.sum(1).max()) if len(inside) else 0
    order = (~inside).byte().argsort(dim=1, stable=True)[:, :width]
    there = inside.gather(1, order)
    return [
        t.gather(1, order) & there if t.dtype == torch.bool else t.gather(1, order).masked_fill(~there, torch.nan)
        for t in tables
    ]


def _penalties(a: Tensor, b: Tensor, among: Tensor | None, p: float) -> Tensor:
    """Over the pairs in `among` (symmetric, [row, i, j]), or all: 1 for opposite orders, p if tied in just one.

    Absent items (NaN) are tied with everything in both lists, which costs nothing.
    """
    higher_a, higher_b = above(a), above(b)
    opposite = higher_a & higher_b.mT  # each pair once
    tied_in_one = (higher_a | higher_a.mT) ^ (higher_b | higher_b.mT)  # each pair twice
    if among is not None:
        opposite, tied_in_one = opposite & among, tied_in_one & among
    return count_pairs(opposite) + p * count_pairs(tied_in_one) / 2


def _fagin(a: Tensor, b: Tensor, n: Tensor, k: Tensor, p: float) -> Tensor:
    k = k.minimum(n)
    (levels_a, inside_a), (levels_b, inside_b) = _levels(a, n, k), _levels(b, n, k)
    listed_a, listed_b = _listed(inside_a | inside_b, levels_a, levels_b)
    distance = _penalties(listed_a, listed_b, None, p)
    z = (2 * k - n).clamp(min=0).double()
    alone = k - z
    most = z * (z - 1) / 2 + alone**2 + 2 * z * alone + p * alone * (alone - 1)
    defined = (k > 0) & _has_order(levels_a) & _has_order(levels_b)
    return (1 - 2 * distance / most).where(defined, torch.nan)


def _has_order(levels: Tensor) -> Tensor:
    """Whether a row has more than one level, [row]."""
    return (levels < levels[:, :1]).any(1) | (levels > levels[:, :1]).any(1)


def _bucket(a: Tensor, b: Tensor, n: Tensor, k: Tensor, p: float) -> Tensor:
    in_a, in_b = _in_best_buckets(a, k), _in_best_buckets(b, k)
    a, b, in_a, in_b = _listed(in_a | in_b, a, b, in_a, in_b)
    joined = in_a[:, :, None] & in_b[:, None, :]
    among = (joined | joined.mT) & ~torch.eye(a.shape[1], dtype=torch.bool, device=a.device)
    pairs = count_pairs(among) / 2
    mean = _penalties(a, b, among, p) / pairs.clamp(min=1)  # no pairs: one and the same item twice, at distance 0
    return (1 - 2 * mean).where((k > 0) & (n > 0), torch.nan)


def _in_best_buckets(x: Tensor, k: Tensor) -> Tensor:
    """Whether fewer than k different scores are higher than an item's, [row, item]."""
    descending, order = x.masked_fill(x.isnan(), -torch.inf).sort(1, descending=True)
    new = torch.zeros_like(order)
    new[:, 1:] = (descending[:, 1:] != descending[:, :-1]).long()
    better = torch.zeros_like(order).scatter(1, order, new.cumsum(1))
    return (better < k[:, None]) & ~x.isnan()


def _legacy(a: Tensor, b: Tensor, n: Tensor, k: Tensor, p: float) -> Tensor:
    k = k.minimum(n)
    in_a, in_b = _first_k(a, k), _first_k(b, k)
    a, b, in_a, in_b = _listed(in_a | in_b, a, b, in_a, in_b)
    both = in_a & in_b
    z = both.sum(1)
    tau = tau_b(a.masked_fill(~both, torch.nan), b.masked_fill(~both, torch.nan), z)
    case_1 = ((1 - tau) / 2 * z**2).where(z > 1, 0)
    case_2 = _overtaken(a, both, in_a & ~both) + _overtaken(b, both, in_b & ~both)
    case_4 = p * (k - z) * (k - z - 1)
    distance = (case_1 + case_2 + case_4) / (2 * k - z) ** 2
    return (1 - 2 * distance).where(k > 0, torch.nan)


def _first_k(x: Tensor, k: Tensor) -> Tensor:
    """Whether an item is among the k best, the earlier of equals first, [row, item]."""
    order = x.masked_fill(x.isnan(), -torch.inf).argsort(dim=1, descending=True, stable=True)
    place = torch.zeros_like(order).scatter(1, order, torch.arange(x.shape[1], device=x.device).expand_as(order))
    return place < k[:, None]


def _overtaken(x: Tensor, common: Tensor, alone: Tensor) -> Tensor:
    """How many pairs of a common item and one in this list alone have the latter higher, [row]."""
    return count_pairs(above(x) & alone[:, :, None] & common[:, None, :])
