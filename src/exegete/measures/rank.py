"""Rank correlation: do two lists put the same items first?

Kendall's τ-b, its two-sided p-value, the largest τ-b that the ties of the two lists allow, Goodman & Kruskal's γ, and
Spearman's ρ. All of them are undefined (NaN) for fewer than two items and for a list whose items are all equal.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.measures.rows import above, by_row, count_pairs

# Up to here scipy's p-values come from counting permutations; beyond, from the normal approximation.
EXACT = 33


class Kendall(NamedTuple):
    """Four numbers for every row, and τ-b as a share of what it could have been."""

    tau: Tensor  # [row], τ-b = (C − D) / √((N − T_1)(N − T_2)): N pairs, concordant, discordant, tied in a list
    p: Tensor  # [row], two-sided, under independence
    maximum: Tensor  # [row], the largest τ-b over all ways to pair the items of the two lists
    gamma: Tensor  # [row], γ = (C − D) / (C + D)

    @property
    def corrected(self) -> Tensor:
        """τ-b divided by its attainable maximum: 1 for the best agreement that the ties allow."""
        return self.tau / self.maximum


class _Ties(NamedTuple):
    """Sums over the groups of equal items in one list, t being the size of a group: what Kendall's variance needs."""

    pairs: Tensor  # [row], Σ t(t−1)/2
    triples: Tensor  # [row], Σ t(t−1)(t−2)
    spread: Tensor  # [row], Σ t(t−1)(2t+5)


def kendall(first: Tensor, second: Tensor) -> Kendall:
    """τ-b, p, attainable maximum and γ of every row of two [row, item] tensors (Kendall 1945; p as in scipy).

    The maximum: let x_i < x_j while y_i > y_j. Exchanging y_i and y_j turns that pair from −1 to +1 and, the sign of a
    difference being monotone, takes nothing from the pairs with any third item (the rearrangement inequality). So C − D
    is largest with both lists sorted, where no pair is discordant; the denominator doesn't depend on the pairing.
    Against a list without ties it is √(1 − T/N).
    """
    return Kendall(*by_row(_kendall, first, second))


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Spearman's ρ of every row: the correlation of ranks, equal items sharing their mean rank (Spearman 1904)."""
    return by_row(_spearman, first, second)


def tau(first: Tensor, second: Tensor) -> Tensor:
    """τ-b of every row."""
    return by_row(tau_b, first, second).clamp(-1, 1)


def tau_max(first: Tensor, second: Tensor) -> Tensor:
    """The largest τ-b that the ties of every row allow."""
    return kendall(first, second).maximum


def tau_corrected(first: Tensor, second: Tensor) -> Tensor:
    """τ-b of every row divided by its largest."""
    return kendall(first, second).corrected


def gamma(first: Tensor, second: Tensor) -> Tensor:
    """Goodman & Kruskal's γ of every row."""
    return kendall(first, second).gamma


def tau_b(a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    """τ-b of rows that are compact already: [row, item] twice and [row] -> [row]."""
    concordant, discordant = _compare(a, b)
    total = n.double() * (n - 1) / 2
    untied = (total - _ties(_steps(a.sort(1).values)).pairs) * (total - _ties(_steps(b.sort(1).values)).pairs)
    return (concordant - discordant) / untied.sqrt()


def _kendall(a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    concordant, discordant = _compare(a, b)
    step_a, step_b = _steps(a.sort(1).values), _steps(b.sort(1).values)
    ties_a, ties_b, ties_both = _ties(step_a), _ties(step_b), _ties(step_a | step_b)
    total = n.double() * (n - 1) / 2
    norm = ((total - ties_a.pairs) * (total - ties_b.pairs)).sqrt()
    score = concordant - discordant
    tau = (score / norm).clamp(-1, 1)
    maximum = ((total - ties_a.pairs - ties_b.pairs + ties_both.pairs) / norm).clamp(max=1)
    p = _p_value(score, discordant, n, ties_a, ties_b).where(norm > 0, torch.nan)
    return torch.stack([tau, p, maximum, score / (concordant + discordant)])


def _spearman(a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    x, y = _centred_ranks(a), _centred_ranks(b)
    rho = (x * y).sum(1) / ((x * x).sum(1) * (y * y).sum(1)).sqrt()
    return rho.clamp(-1, 1).where(n > 1, torch.nan)


def _centred_ranks(x: Tensor) -> Tensor:
    """Items below minus items above, [row, item]: twice the distance of its mean rank from the middle."""
    higher = above(x)
    return (higher.sum(2) - higher.sum(1)).double()


def _compare(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of concordant and of discordant pairs, [row] each, every pair seen from its higher item in a."""
    higher_a, higher_b = above(a), above(b)
    return count_pairs(higher_a & higher_b), count_pairs(higher_a & higher_b.mT)


def _steps(ascending: Tensor) -> Tensor:
    """Where a sorted list takes a new value, [row, item]; absent items (NaN, last) are steps of their own."""
    new = torch.ones_like(ascending, dtype=torch.bool)
    new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]  # NaN differs from NaN
    return new


def _ties(steps: Tensor) -> _Ties:
    """Tie sums of a sorted list from its steps; an absent item is a group of one and adds nothing."""
    group = steps.cumsum(1) - 1  # [row, item], the number of an item's group
    t = torch.zeros_like(steps, dtype=torch.float64).scatter_add_(1, group, torch.ones_like(group, dtype=torch.float64))
    twice = t * (t - 1)  # 0 for groups of one, and for places without a group
    return _Ties(twice.sum(1) / 2, (twice * (t - 2)).sum(1), (twice * (2 * t + 5)).sum(1))


def _p_value(score: Tensor, discordant: Tensor, n: Tensor, a: _Ties, b: _Ties) -> Tensor:
    """Exact without ties for few items or for at most one pair out of line, else normal (Kendall 1970, chapter 4)."""
    total = n * (n - 1) // 2
    fewest = torch.minimum(discordant.long(), total - discordant.long())
    exact = ((n <= EXACT) | (fewest <= 1)) & (a.pairs + b.pairs == 0)
    return _exact(fewest, n).where(exact, _normal(score, n, a, b))


def _normal(score: Tensor, n: Tensor, a: _Ties, b: _Ties) -> Tensor:
    """P(|C − D| is as large) if C − D were normal with its variance under independence, given both lists' ties."""
    m = (n * (n - 1)).double()
    variance = (
        (m * (2 * n + 5) - a.spread - b.spread) / 18
        + 2 * a.pairs * b.pairs / m
        + a.triples * b.triples / (9 * m * (n - 2))
    )
    tails: Tensor = torch.special.erfc(score.abs() / (2 * variance).sqrt())
    return tails


def _exact(fewest: Tensor, n: Tensor) -> Tensor:
    """2 P(at most `fewest` inversions in a random permutation of n): by table, or by hand for 0 or 1 among many."""
    table = _inversions().to(n.device)
    counted = table[n.clamp(max=EXACT), fewest.clamp(0, table.shape[1] - 1)]
    by_hand = (
        n.double().log() * fewest - torch.lgamma(n.double() + 1)
    ).exp()  # 1 / n!, or n / n! with one inversion allowed
    return (2 * counted.where(n <= EXACT, by_hand)).clamp(max=1)


@cache
def _inversions() -> Tensor:
    """[n, c]: the probability that a random permutation of n ≤ 33 items has at most c inversions.

    The n-th item adds 0 … n−1 inversions with equal probability, so P_n(c) is the mean of P_{n−1}(c − n + 1 … c). Sums
    of positive numbers only: small probabilities keep all their digits.
    """
    most = EXACT * (EXACT - 1) // 2
    exactly = torch.zeros(most + 1, dtype=torch.float64)
    exactly[0] = 1
    rows = [exactly, exactly]
    for n in range(2, EXACT + 1):
        rows.append(torch.cat([exactly.new_zeros(n - 1), rows[-1]]).unfold(0, n, 1).mean(1))
    return torch.stack(rows).cumsum(1)
