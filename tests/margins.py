"""Margins: what is decided by a hair is decided by the CPU, so discrete outcomes are compared where they are clear.

    with clear() as sure:
        for … :
            if sure(lead(logits)):
                assert predicted == …

At the end most cases must have been clear: a test that compares nothing would never fail.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import inf

BY, MOST = 1e-5, 0.75


class Sure:
    """Which cases are clear, and how many were."""

    def __init__(self) -> None:
        self.cases: list[bool] = []

    def __call__(self, *margins: float) -> bool:
        """Whether every margin is wider than rounding."""
        self.cases.append(min(margins) > BY)
        return self.cases[-1]


@contextmanager
def clear() -> Iterator[Sure]:
    """Cases of one test, most of which must be clear."""
    sure = Sure()
    yield sure
    assert sum(sure.cases) >= MOST * len(sure.cases) > 0, f"only {sum(sure.cases)} of {len(sure.cases)} cases are clear"


def lead(values: Sequence[float]) -> float:
    """How far the largest is ahead of the next."""
    return gap(sorted(values)[-2:])


def gap(values: Sequence[float]) -> float:
    """The smallest difference of any two: how clear an order is."""
    return min((b - a for a, b in pairwise(sorted(values))), default=inf)
