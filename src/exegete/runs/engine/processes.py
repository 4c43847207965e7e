"""Processes: how every worker starts, whatever it does afterwards; nothing heavy is imported here.

A worker never imports the user's script, so that a script needs no `if __name__ == "__main__"`: nothing that is sent to
it lives there.
"""

import os
import signal
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from exegete.base.garbage import look_rarely

_starting = threading.Lock()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker(SpawnProcess):
    """A process that doesn't import the script which starts it: it is told that this is a package's `__main__`."""

    def start(self) -> None:
        """As any process, with another specification of `__main__` meanwhile."""
        main = sys.modules["__main__"]
        with _starting:
            spec, main.__spec__ = main.__spec__, ModuleSpec("__main__", None)
            # Ctrl-C is the parent's to handle, from a worker's first moment: blocked here, it stays so there.
            heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                super().start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, heard)
                main.__spec__ = spec


class Workers(SpawnContext):
    """Starts the workers of one engine, and knows them: those of others are not its to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Worker] = []

    def Process(self, *args: Any, **kwargs: Any) -> Worker:  # type: ignore[override]  # noqa: N802
        """One more worker."""
        self.started.append(Worker(*args, **kwargs))
        return self.started[-1]


def settle(parent: int) -> None:
    """What a worker does first: it dies with its parent, and looks for little garbage."""
    look_rarely()
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent: int) -> None:
    """A worker whose parent was killed stops at once, so that nobody writes into a run that was given up."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
