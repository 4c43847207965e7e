"""Processes: how every worker starts, whatever it does afterwards; nothing heavy is imported here.

A worker never imports the user's script, so that a script needs no `if __name__ == "__main__"`: nothing that is sent to
it lives there.

To import what computes takes a worker two seconds. A command that will need workers says so first (`get_ahead`): then
a process imports it on another core while the command itself does, and workers are forked from there. It is asked to
import only what may be forked: no threads of its own (polars has some), nothing that was computed with.
"""

import multiprocessing as mp
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Any

from exegete.base.memory import keep_freed, look_rarely

FORKED = ("numpy", "torch", "scipy.special", "pydantic", "altair")  # imported once for all workers
_starting = threading.Lock()
_ahead = threading.Event()  # whether there is a process from which workers are forked
_alone = threading.Event()  # set in a worker: the other cores are for its colleagues
_most: ContextVar[int | None] = ContextVar("_most", default=None)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def at_most(processes: int) -> Iterator[None]:
    """Inside, work that is shared among processes is shared by so many: what a person asked for."""
    before = _most.set(processes)
    try:
        yield
    finally:
        _most.reset(before)


def stay_alone() -> None:
    """From now on this process starts no others to help it: it is one of many itself."""
    _alone.set()


def hands() -> int:
    """Processes that may share a piece of work of this one; one in a worker, as its pool has the other cores."""
    if _alone.is_set() or mp.parent_process() is not None or mp.current_process().daemon:
        return 1
    return min(cores(), _most.get() or cores())


def get_ahead() -> None:
    """Begin to import in a process of its own what workers of this command will need, if there is a core for it."""
    if sys.platform == "linux" and cores() > 1 and not _ahead.is_set():
        from multiprocessing import forkserver, resource_tracker

        mp.set_forkserver_preload(list(FORKED))
        resource_tracker.ensure_running()  # where it starts, it unblocks Ctrl-C again
        with _undisturbed():
            forkserver.ensure_running()
        _ahead.set()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What starts here doesn't hear Ctrl-C, from its first moment: blocked here, it stays so there."""
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


class _Unknowing(BaseProcess):
    """A process that doesn't import the script which starts it: it is told that this is a package's `__main__`."""

    def start(self) -> None:
        """As any process, with another specification of `__main__` meanwhile; Ctrl-C is the parent's to handle."""
        main = sys.modules["__main__"]
        with _starting:
            spec, main.__spec__ = main.__spec__, ModuleSpec("__main__", None)
            try:
                with _undisturbed():
                    super().start()
            finally:
                main.__spec__ = spec


class Spawned(_Unknowing, SpawnProcess):
    """A worker that begins with nothing."""


if sys.platform == "win32":
    Forked = Spawned
else:
    from multiprocessing.context import ForkServerProcess

    class Forked(_Unknowing, ForkServerProcess):
        """A worker that has imported already what computes."""


Worker = Spawned | Forked


class Workers(SpawnContext):
    """Starts the workers of one engine, and knows them: those of others are not its to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Worker] = []

    def Process(self, *args: Any, **kwargs: Any) -> Worker:  # type: ignore[override]  # noqa: N802
        """One more worker."""
        kind = Forked if _ahead.is_set() else Spawned
        self.started.append(kind(*args, **kwargs))
        return self.started[-1]


def settle(environment: Mapping[str, str]) -> None:
    """What a worker does first: it takes its parent's environment, dies with it, and cleans up rarely."""
    os.environ.update(environment)  # one that was forked has that of another moment
    look_rarely()
    keep_freed()
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()


def _die_with(started_by: int) -> None:
    """A worker whose parent was killed stops at once, so that nobody writes into a run that was given up.

    What started it is the parent, or dies with it.
    """
    parent = mp.parent_process()
    while os.getppid() == started_by and parent is not None and parent.is_alive():
        time.sleep(0.5)
    os._exit(1)
