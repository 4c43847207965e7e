"""Parallel map: a job for many things, done on several cores, the results in the order of the things.

A result does not tell where it was made: who shares work gets what it would have made alone, errors included. Few
things are on their way at a time, so that memory holds no more of them, however many there are.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from exegete.base.processes import Workers, settle

Input = TypeVar("Input")
Mapped = TypeVar("Mapped")
MapJob = Callable[[Input], Mapped]
AHEAD = 2  # things for each process that are on their way


def map_in_parallel(
    job: MapJob[Input, Mapped], items: Iterable[Input], hands: int
) -> Generator[tuple[Input, Mapped], None, None]:
    """Every item with its result, in order; of several errors the first in this order is raised.

    With one hand the work is done here, and so is that of a process which died.
    """
    if hands == 1:
        yield from ((item, job(item)) for item in items)
        return
    context = Workers()
    pool = ProcessPoolExecutor(hands, context, settle, (dict(os.environ),))
    try:
        for item, future in _in_order(pool, job, items, AHEAD * hands):
            yield item, _result(job, item, future)
    finally:
        for worker in context.started:
            if worker.pid is not None:  # else it could not be started
                worker.kill()  # nobody waits for what is left
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor, job: MapJob[Input, Mapped], items: Iterable[Input], most: int
) -> Iterator[tuple[Input, "Future[Mapped] | None"]]:
    """Items that were handed over, at most so many of them beyond the one that is waited for."""
    waiting: deque[tuple[Input, Future[Mapped] | None]] = deque()
    try:
        for item in items:
            waiting.append((item, _handed(pool, job, item)))
            if len(waiting) > most:
                yield waiting.popleft()
    except Exception:
        yield from waiting  # an error of an earlier item comes first
        raise
    yield from waiting


def _handed(pool: ProcessPoolExecutor, job: MapJob[Input, Mapped], item: Input) -> "Future[Mapped] | None":
    try:
        return pool.submit(job, item)
    except BrokenProcessPool:
        return None


def _result(job: MapJob[Input, Mapped], item: Input, future: "Future[Mapped] | None") -> Mapped:
    try:
        return job(item) if future is None else future.result()
    except BrokenProcessPool:
        return job(item)
