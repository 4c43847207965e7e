"""What an engine promises: it runs the independent pieces of a study, and nobody else knows where.

A piece is a job (a function of a module) and an item that it is done for, both of which can be sent to another process.
What a piece finds it writes into the run folder under its key; what it returns is small. So a piece may be done twice,
and one that was lost is done again.

- Pieces begin in the order of the items: whoever hands them over puts the longest first.
- A worker that dies is replaced, and the piece that it was at is done again, at most RETRIES times. Then it is cut in
  two, if it can be (`Halving`), and tried once more, for memory is what kills most often; where it is known that memory
  did, at once. If its halves kill, too, it is set aside, all others are done, and the error at the end names it. An
  error of the piece itself ends the map at once.
- Leaving the context lets the workers go; after an error or Ctrl-C without waiting for what they do.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from exegete.base.errors import ExegeteError
from exegete.base.progress import Progress, silent

Item = TypeVar("Item")
JobResult = TypeVar("JobResult")
Job = Callable[[Item, Progress], JobResult]
RETRIES = 3  # of a piece whose worker died


class Engine(Protocol):
    """Runs a job for many items, as a context that lets its workers go."""

    @property
    def workers(self) -> int:
        """Pieces that are done side by side."""

    def map(
        self, job: Job[Item, JobResult], items: Sequence[Item], progress: Progress = silent
    ) -> Iterator[tuple[Item, JobResult]]:
        """Do the job for every item; results as they come."""

    def warm(self, job: Job[Item, None], item: Item) -> None:
        """Let every worker prepare itself by a job while this process does what it alone can do."""

    def reach(self, folder: Path | None, files: Sequence[Path]) -> None:
        """Refuse, in a sentence, a run folder or files of the user's own that some worker can't see."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the workers go."""


@runtime_checkable
class Halving(Protocol):
    """A piece that can be done in two halves, one after the other, which together need less memory."""

    def halved(self) -> Any:
        """The piece in halves; None if it can't be cut, or is in halves already."""


def halve(piece: Item) -> Item | None:
    """A piece in halves, if it can be cut."""
    found: Item | None = piece.halved() if isinstance(piece, Halving) else None
    return found


class SetAsideError(ExegeteError):
    """Workers kept dying at some pieces, which are missing; all others are done."""

    def __init__(self, pieces: Sequence[object], total: int) -> None:
        self.pieces, self.total = tuple(pieces), total
        named = "; ".join(str(piece) for piece in pieces[:5]) + (" …" if len(pieces) > 5 else "")
        super().__init__(
            f"a worker process died again and again (out of memory?) at {len(pieces)} of {total} pieces, which are "
            f"missing: {named}; all else is kept: run the same command again, with fewer --workers or more memory"
        )
