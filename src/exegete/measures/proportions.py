"""Proportions: the interval of a share, by Wilson's score and exactly; and fair coins, for medians and signs.

By `scipy.special`: `scipy.stats` has the same, and takes half a second to import.
"""

import math

import numpy as np
from scipy import special


def wilson(share: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval (1927): (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n).

    Unlike the bootstrap's it is not empty where no text, or every text, counts.

    >>> [round(end, 3) for end in wilson(0.0, 20)]
    [0.0, 0.161]
    """
    z = float(special.ndtri((1 + level) / 2))
    centre, room = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = ((centre + side * room) / (1 + z * z / n) for side in (-1, 1))
    return low if share > 0 else 0.0, high if share < 1 else 1.0  # exactly, whatever the rounding


def clopper_pearson(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share (Clopper & Pearson 1934): it never covers too little.

    >>> [round(end, 3) for end in clopper_pearson(0, 20)]
    [0.0, 0.168]
    """
    tail = (1 - level) / 2
    low = float(special.betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(special.betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def fair_quantile(level: float, n: int) -> int:
    """The least k so that n fair coins show at most k heads with at least this probability.

    >>> fair_quantile(0.025, 20)
    6
    """
    return int(np.argmax(special.bdtr(np.arange(n + 1), n, 0.5) >= level))


def sign_p(above: int, below: int) -> float:
    """Both sides of the exact sign test: how often fair coins are at least as uneven; 1 where there are none.

    >>> round(sign_p(9, 1), 4)
    0.0215
    """
    n = above + below
    return min(1.0, 2 * float(special.bdtr(min(above, below), n, 0.5))) if n else 1.0
