"""Heartbeat: a line on standard error every half minute says how far the work is, where nobody sees bars."""

import sys
import threading
import time
from contextlib import suppress
from types import TracebackType

EVERY = 30.0  # seconds between two lines


class Heartbeat:
    """Told how far the work is, it says what it heard last every half minute, for as long as the block runs."""

    def __init__(self) -> None:
        self._last, self._started, self._over = "working", time.monotonic(), threading.Event()

    def __call__(self, label: str, done: int, total: int) -> None:
        """Remember how far a piece of work is."""
        self._last = f"{label} {done:,}/{total:,}"

    def say(self, sentence: str) -> None:
        """A sentence at once."""
        _print(f"note: {sentence}")

    def _beat(self) -> None:
        while not self._over.wait(EVERY):
            minutes, seconds = divmod(round(time.monotonic() - self._started), 60)
            _print(f"{minutes}:{seconds:02d} {self._last}")

    def __enter__(self) -> "Heartbeat":
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()


def _print(line: str) -> None:
    """A line on standard error, whatever its letters; where nobody can be told, the work goes on."""
    with suppress(OSError, ValueError, AttributeError):  # closed, full, or none at all
        shown = line.encode(sys.stderr.encoding or "utf8", "replace").decode(sys.stderr.encoding or "utf8")
        print(shown, file=sys.stderr, flush=True)
