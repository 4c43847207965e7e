"""Progress: how work says how far it is, without knowing who listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable


class Progress(Protocol):
    """Told of a piece of work by its label: how much is done, of how much."""

    def __call__(self, label: str, done: int, total: int) -> None:
        """Show it, or don't."""


@runtime_checkable
class Speaking(Protocol):
    """A listener who also hears sentences, and keeps them in sight."""

    def say(self, sentence: str) -> None:
        """Show a sentence that stays."""


def silent(label: str, done: int, total: int) -> None:
    """Nobody listens."""


_listener: ContextVar[Progress] = ContextVar("_listener", default=silent)


@contextmanager
def heard(listener: Progress) -> Iterator[None]:
    """Inside, `tell` is heard: for work that is asked for by name and kept, so that no listener can be handed in."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def tell(label: str, done: int, total: int) -> None:
    """Say how far a piece of work is to whoever listens."""
    _listener.get()(label, done, total)
