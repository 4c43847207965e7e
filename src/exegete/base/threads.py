"""Threads: how many torch uses, which is one wherever numbers are made.

Two torch threads in one process can be slower than one on a busy machine, and sums that are cut otherwise are rounded
otherwise: with one, a number does not hang on the machine's cores.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside, as many as before after."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
