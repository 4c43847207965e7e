"""Progress: how work says how far it is, without knowing who listens."""

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
