"""Progress: how work says how far it is, without knowing who listens."""

from typing import Protocol


class Progress(Protocol):
    """Told of a piece of work by its label: how much is done, of how much."""

    def __call__(self, label: str, done: int, total: int) -> None:
        """Show it, or don't."""


def silent(label: str, done: int, total: int) -> None:
    """Nobody listens."""
