"""Lease: one process at a time at a piece of work, on a local disk or a shared file system.

A lease is a file that names its owner, made where there is none; its owner touches it every few seconds. One that was
not touched for longer, or whose owner was a process of this machine that is gone, has expired and is taken over. Ages
are told by the clock of the file system, which writes the times of both files that are compared: the clocks of two
machines may differ.

A lease saves work and is no guard of it: an owner that slept for a minute may wake up beside the next one. So whatever
is done under a lease is written beside, renamed, and named by its content: two writers of one key are harmless.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from exegete.base.errors import ExegeteError
from exegete.base.files import plain_disk_errors

BEAT, EXPIRY = 5.0, 30.0  # seconds between signs of life, and without any until it has expired
WAIT = 0.2  # seconds between two looks at a lease that another has


@contextmanager
def hold_lease(path: Path, refusal: str = "") -> Iterator[None]:
    """Own a lease inside the block; another's is waited for, or is an error: `refusal`, with who has it."""
    token = uuid4().hex
    with plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        while not _made(path, token):
            seen = _seen(path)
            if seen is not None and _expired(path, seen):
                _take_over(path, seen)
            elif seen is not None and refusal:
                raise ExegeteError(f"{refusal} ({_owner(path, seen)})")
            elif seen is not None:
                time.sleep(WAIT)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(path, over), daemon=True)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()
        if (_seen(path) or {}).get("token") == token:
            path.unlink(missing_ok=True)


def _made(path: Path, token: str) -> bool:
    """Whether there was none, and ours is there now."""
    facts = {"token": token, "host": socket.gethostname(), "system": _system(), "pid": os.getpid()}
    try:
        with path.open("x", encoding="utf8") as file:
            file.write(json.dumps(facts))
    except FileExistsError:
        return False
    return True


def _system() -> str:
    """What a process number is a number of: this start of this machine and, in a container, its own processes."""
    with suppress(OSError):
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    return socket.gethostname()


def _seen(path: Path) -> dict[str, Any] | None:
    """What a lease says, nothing yet where it is being written; None if there is none."""
    try:
        facts = json.loads(path.read_text(encoding="utf8") or "{}")
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _expired(path: Path, seen: dict[str, Any]) -> bool:
    return _is_gone(seen) or _age(path) > EXPIRY


def _is_gone(seen: dict[str, Any]) -> bool:
    """Whether the owner was a process of this machine, and is no more."""
    if seen.get("system") != _system():
        return False
    try:
        os.kill(seen["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _age(path: Path) -> float:
    """Seconds since the last sign of life, by the file system's own clock."""
    now = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        now.touch()
        return now.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:  # it was given back meanwhile
        return 0.0
    finally:
        now.unlink(missing_ok=True)


def _take_over(path: Path, seen: dict[str, Any]) -> None:
    """Remove a lease that has expired; if another was quicker, and this is his, it is put back."""
    aside = path.with_name(f"{path.name}.{uuid4().hex}")
    with suppress(FileNotFoundError):
        path.rename(aside)
        if _seen(aside) != seen and not path.exists():
            aside.rename(path)
        aside.unlink(missing_ok=True)


def _beat(path: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with suppress(OSError):  # taken over while we slept: whoever has it writes what we write
            os.utime(path)


def _owner(path: Path, seen: dict[str, Any]) -> str:
    who = f"process {seen['pid']} on {seen['host']}" if "pid" in seen else "an unknown process"
    return f"{who}, heard of {_age(path):.0f} s ago; if it was killed, the folder is free {EXPIRY:.0f} s after that"
