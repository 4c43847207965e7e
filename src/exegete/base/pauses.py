"""Pauses: before every pass of a model, whoever waits for the work may end it.

A check is called at every pause, and ends the work by what it raises. It belongs to the thread or task that set it;
inner blocks add theirs. Where nobody checks, a pause takes a tenth of a microsecond.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
_checks: ContextVar[tuple[Check, ...]] = ContextVar("checks", default=())


@contextmanager
def call_at_pauses(check: Check) -> Iterator[None]:
    """Inside, every pause calls this."""
    before = _checks.set((*_checks.get(), check))
    try:
        yield
    finally:
        _checks.reset(before)


def pause() -> None:
    """What takes long calls this between its parts."""
    for check in _checks.get():
        check()
