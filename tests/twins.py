"""A formula and its slow twin: the decorator `twin_of` makes the test that they agree."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

Row = Sequence[float]
Lists = tuple[Row, ...]  # the arguments of a slow function: lists of one length


def items(*one: st.SearchStrategy[float], least: int = 1, most: int = 9) -> st.SearchStrategy[Lists]:
    """Lists of one length, whose items are drawn side by side: one strategy per list."""
    drawn = st.lists(st.tuples(*one), min_size=least, max_size=most)
    return drawn.map(lambda rows: tuple(zip(*rows, strict=True)))


def padded(rows: Sequence[Row]) -> Tensor:
    """[row, item], with NaN after the end of a list."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[torch.nan] * (width - len(row))] for row in rows], dtype=torch.float64)


Slow = TypeVar("Slow", bound=Callable[..., float])


def twin_of(
    fast: Callable[..., Tensor], drawn: st.SearchStrategy[Lists], close: float = 1e-12
) -> Callable[[Slow], Slow]:
    """Hold the decorated function, a formula for one list of items as its paper writes it, against `fast`.

    The test stands beside the function in its module. It asks for several rows of different lengths at once, each
    filled up with NaN: so it is also the test that neither batches nor padding change anything.
    """

    def decorated(slow: Slow) -> Slow:
        @given(st.lists(drawn, min_size=1, max_size=3))
        @settings(deadline=None, max_examples=60)
        def agree(rows: list[Lists]) -> None:
            together = fast(*(padded(column) for column in zip(*rows, strict=True)))
            expected = [slow(*lists) for lists in rows]
            assert together.tolist() == pytest.approx(expected, abs=close, nan_ok=True)

        setattr(sys.modules[slow.__module__], f"test_{slow.__name__}_is_its_twin", agree)  # where pytest looks
        return slow

    return decorated
