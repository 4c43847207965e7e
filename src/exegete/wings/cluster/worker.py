"""What runs on the nodes of a Ray cluster: hands that do pieces, a board where they say how far they are, a look round.

Actors are made from these classes by the engine; here nothing of Ray is imported. What comes back is small: results,
sentences and numbers. An error of ours is sent as its sentence: Ray would wrap it, and retry what can't succeed.
"""

import os
import platform
import socket
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exegete.plugins import ExegeteError, Job, UsageError, __version__, keep_freed, package_hash, stay_alone

EVERY = 0.5  # seconds between two words of a hand about one piece of work


class PieceOutcome(NamedTuple):
    """What came of a piece: what it found, or what is to be said."""

    kind: Literal["found", "wrong", "usage", "defect"]
    found: Any

    def result(self) -> Any:
        """What was found; raises what was wrong."""
        if self.kind == "found":
            return self.found
        raise {"wrong": ExegeteError, "usage": UsageError, "defect": RuntimeError}[self.kind](self.found)


class Hand:
    """A worker: a process of its own with one thread, which keeps what it has loaded from one piece to the next."""

    def __init__(self, board: Any, folder: str) -> None:
        import torch

        os.chdir(folder)  # so that names of files mean what they mean where the command was given
        torch.set_num_threads(1)
        stay_alone()
        keep_freed()
        self._board = board
        self._told: dict[str, float] = {}

    def ready(self) -> None:
        """Answered when it can begin."""

    def work(self, job: Job[Any, Any], item: Any) -> PieceOutcome:
        """Do a piece."""
        try:
            return PieceOutcome("found", job(item, self._tell))
        except ExegeteError as error:
            return PieceOutcome("usage" if isinstance(error, UsageError) else "wrong", str(error))
        except Exception:  # noqa: BLE001 - a defect of ours: shown where the command was given
            return PieceOutcome("defect", traceback.format_exc())

    def _tell(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - self._told.get(label, 0.0) > EVERY:
            self._told[label] = now
            self._board.tell.remote(label, done, total)


class Board:
    """Where hands write how far they are: the last word about each piece of work, until it is read."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[int, int]] = {}

    def tell(self, label: str, done: int, total: int) -> None:
        """Write."""
        self._said[label] = (done, total)

    def take(self) -> dict[str, tuple[int, int]]:
        """Read, and wipe."""
        said, self._said = self._said, {}
        return said


class NodeContents(NamedTuple):
    """What there is on a node."""

    host: str
    python: str
    exegete: str
    code: str  # of everything that is shipped
    unseen: tuple[str, ...] = ()  # folders and files that are not there, or not the same


def look(folder: str, files: Sequence[tuple[str, int]]) -> NodeContents:
    """Look round on a node: versions, and which files (with their sizes; of a folder, -1) can't be seen there."""
    unseen = [] if Path(folder).is_dir() else [folder]
    unseen += [name for name, size in files if size_of(Path(name)) != size]
    return NodeContents(socket.gethostname(), platform.python_version(), __version__, package_hash(), tuple(unseen))


def size_of(path: Path) -> int | None:
    """The size of a file, -1 of a folder, None of what is not there."""
    return path.stat().st_size if path.is_file() else -1 if path.is_dir() else None
