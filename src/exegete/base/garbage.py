"""Garbage: how often Python looks for objects that only refer to each other."""

import atexit
import gc


def look_rarely() -> None:
    """Look for garbage every 20,000 new objects, not every 700.

    Importing a thousand modules makes millions of objects and no garbage, and looking for it takes half a second of
    every process. What tensors hold is freed with the last reference, as ever.
    """
    gc.set_threshold(20_000, 20, 20)


def leave_at_the_end() -> None:
    """Don't look for it when the process ends, which gives back all of its memory anyway: 0.6 s after an audit."""
    atexit.register(gc.freeze)
