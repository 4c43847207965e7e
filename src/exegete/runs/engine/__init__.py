"""Engines: what runs the independent pieces of a study, chosen by name; a second one is one file and one line here."""

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

from exegete.base.arguments import shown
from exegete.base.errors import UsageError
from exegete.base.names import Catalogue, Entry
from exegete.base.progress import Progress, silent

Item = TypeVar("Item")
Result = TypeVar("Result")
Job = Callable[[Item, Progress], Result]


class Engine(Protocol):
    """Runs a job for many items, as a context that lets its workers go."""

    workers: int

    def map(
        self, job: Job[Item, Result], items: Sequence[Item], progress: Progress = silent
    ) -> Iterator[tuple[Item, Result]]:
        """Do the job for every item; results as they come."""

    def warm(self, job: Job[Item, None], item: Item) -> None:
        """Let every worker prepare itself by a job while this process does what it alone can do."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the workers go."""


ENGINES = Catalogue(
    "engine", {"local": Entry("exegete.runs.engine.local:LocalEngine", "worker processes on this machine")}
)


def engine_of(name: "str | Engine" = "local", workers: int | None = None) -> Engine:
    """The engine that a name stands for, with so many workers (one per core unless given); an engine is itself."""
    if workers is not None and workers < 1:
        raise UsageError(f"workers is a number of processes, 1 or more, not {workers}")
    if not isinstance(name, str):
        if not hasattr(name, "map"):
            raise UsageError(f"an engine is a name or an object with `map`, not {shown(name)}")
        return name
    made: Engine = ENGINES[name].load()(workers)
    return made
