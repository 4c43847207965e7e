"""Points: do two numbers go together over a few points, such as models?

Spearman's ρ and Kendall's τ-b, with intervals through Fisher's z (Bonett & Wright 2000: its standard error is
√((1 + ρ²/2)/(n − 3)) and √(0.437/(n − 4))), and a two-sided p over permutations of one of the two: all of them for up
to 7 points, 9,999 drawn ones beyond. Fewer than 4 points say nothing. Both take points for independent: average what
is not, such as the seeds of one model, before.
"""

import math
from itertools import permutations
from typing import NamedTuple

import torch
from scipy import special
from torch import Tensor

FEWEST = 4
EXACT = 7  # points of which all permutations are counted
DRAWS = 9_999
TOO_FEW, CONSTANT = "too few", "one of the two does not vary"


class Related(NamedTuple):
    """How two numbers go together; None where there is no saying."""

    statistic: str
    n: int  # points that have both
    undefined: int  # points that lack one
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    note: str = ""


def relate(x: Tensor, y: Tensor, level: float = 0.95) -> list[Related]:
    """Spearman's ρ and Kendall's τ-b of x and y, [point] each; NaN marks what is undefined."""
    there = ~(x.isnan() | y.isnan())
    a, b = x[there].double(), y[there].double()
    n, undefined = len(a), int((~there).sum())
    names = ("spearman", "kendall")
    if n < FEWEST:
        return [Related(name, n, undefined, note=TOO_FEW) for name in names]
    if len(a.unique()) == 1 or len(b.unique()) == 1:
        return [Related(name, n, undefined, note=CONSTANT) for name in names]
    orders = _orders(n)
    found = []
    for name, left, right in (("spearman", _ranks(a), _ranks(b)), ("kendall", _signs(a), _signs(b))):
        value = float(left.flatten() @ right.flatten())
        low, high = _interval(name, value, n, level)
        found.append(Related(name, n, undefined, value, low, high, _p(name, value, left, right, orders)))
    return found


def _ranks(values: Tensor) -> Tensor:
    """Ranks, ties shared, centred and of length 1: a product of two such is ρ. [point]"""
    from scipy import stats  # half a second that whoever only judges doesn't pay

    ranks = torch.from_numpy(stats.rankdata(values.numpy()))
    centred = ranks - ranks.mean()
    unit: Tensor = centred / centred.norm()
    return unit


def _signs(values: Tensor) -> Tensor:
    """The sign of every difference, of length 1: a product of two such is τ-b. [point, point]"""
    signs = (values[:, None] - values).sign()
    unit: Tensor = signs / signs.norm()
    return unit


def _orders(n: int) -> Tensor:
    """Orders of n points, [order, point]: all of them, or some drawn ones."""
    if n <= EXACT:
        return torch.tensor(list(permutations(range(n))))
    return torch.rand(DRAWS, n, generator=torch.Generator().manual_seed(0)).argsort(-1)


def _p(name: str, value: float, left: Tensor, right: Tensor, orders: Tensor) -> float:
    """The share of orders whose coefficient is at least as far from 0; of drawn ones, the observed one counts too."""
    if name == "spearman":
        values = left[orders] @ right  # [order]
    else:
        some = (left[part[:, :, None], part[:, None]] * right for part in orders.split(1000))  # [order, point, point]
        values = torch.cat([products.sum((1, 2)) for products in some])
    extreme = int((values.abs() >= abs(value) - 1e-9).sum())
    exact = len(left) <= EXACT
    return extreme / len(orders) if exact else (extreme + 1) / (len(orders) + 1)


def _interval(name: str, value: float, n: int, level: float) -> tuple[float | None, float | None]:
    """Through Fisher's z; points in perfect order have none, nor have 4 points for τ."""
    freedom = n - (3 if name == "spearman" else 4)
    if freedom < 1 or abs(value) > 1 - 1e-9:
        return None, None
    variance = (1 + value**2 / 2) / freedom if name == "spearman" else 0.437 / freedom
    half = float(special.ndtri((1 + level) / 2)) * math.sqrt(variance)
    return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)
