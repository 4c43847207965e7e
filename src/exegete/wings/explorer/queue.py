"""Queue: how many may wait for an answer at a time; one more is told so, and asks again."""

from collections.abc import Iterator
from contextlib import contextmanager

from exegete.plugins import ExegeteError

WAITING = 64  # questions that may wait


class Busy(ExegeteError):  # noqa: N818
    """Too many questions at a time."""


class Room:
    """Lets in as many as may wait."""

    def __init__(self, size: int = WAITING) -> None:
        self.size, self.taken = size, 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """One place, for as long as a question takes."""
        if self.taken >= self.size:
            raise Busy(f"{self.size} questions are waiting for this run already: ask again in a moment")
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
