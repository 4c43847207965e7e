"""Interrupts: Ctrl-C is answered at once, and the command ends within two seconds, whatever is being computed.

Python hears of Ctrl-C when the call that it is in comes back, and a call into a library may take long. So a thread
hears it from the operating system: it says so, gives the rest of the program time to stop in good order, and then ends
it. Nothing is lost by that: what is written appears whole or not at all, and the same command goes on where it was.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

STOPPED = 130  # what a shell expects after Ctrl-C
PATIENCE = 1.5  # seconds for stopping in good order
SAID = b"\nstopping; what is done is kept\n"
ENDED = b"error: stopped; the same command goes on where it was\n"


@contextmanager
def heard_at_once() -> Iterator[None]:
    """Answer Ctrl-C while the block runs; where signals are another's to handle (no main thread), do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    over = threading.Event()
    threading.Thread(target=_listen, args=(ear, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(mouth)  # the listener reads the end of it, and goes


def end(code: int) -> NoReturn:
    """Leave; after Ctrl-C without waiting for libraries and threads to be taken down."""
    if _heard.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


_heard = threading.Event()


def _listen(ear: int, over: threading.Event) -> None:
    while heard := os.read(ear, 1):
        if heard[0] == signal.SIGINT:
            _heard.set()
            os.write(2, SAID)
            if not over.wait(PATIENCE):
                os.write(2, ENDED)
                os._exit(STOPPED)  # workers see that their parent is gone
    os.close(ear)
