"""Proportions: the interval of a share, by Wilson's score and exactly."""

import math

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
