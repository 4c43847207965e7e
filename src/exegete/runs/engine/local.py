"""Local engine: independent pieces of work on this machine, a warm worker process per core, one torch thread each.

A new process pays seconds to import torch: so workers are processes that start once and stay (`processes` says how).
"""

import multiprocessing as mp
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from exegete.base.device import CPU, in_use
from exegete.base.errors import UsageError
from exegete.base.processes import Workers, cores, settle
from exegete.base.progress import Progress, silent
from exegete.base.threads import one_thread
from exegete.runs.engine.contract import RETRIES, Item, Job, JobResult, SetAsideError, halve

_messages: "Queue[tuple[str, int, int] | None] | None" = None  # in a worker: where it tells how far it is


class LocalEngine:
    """Worker processes that stay warm from one map to the next; with one worker the work is done here."""

    def __init__(self, workers: int | None = None, address: str = "") -> None:
        if address:
            raise UsageError(f"the local engine has no address: leave '{address}' out, or name another engine")
        self._wanted = workers
        self._pool: ProcessPoolExecutor | None = None
        self._queue: Queue[tuple[str, int, int] | None] | None = None
        self._context = Workers()
        self._asked = False  # whether workers have more to do than to get ready

    @property
    def workers(self) -> int:
        """As many as asked for, or one per core; one where models are on a GPU, whose memory they would share.

        In a worker of somebody else's pool, the pool has the cores; a daemonic one may have no children at all.
        """
        if mp.current_process().daemon:
            return 1
        return self._wanted or (cores() if in_use().type == CPU and mp.parent_process() is None else 1)

    def map(
        self, job: Job[Item, JobResult], items: Sequence[Item], progress: Progress = silent
    ) -> Iterator[tuple[Item, JobResult]]:
        """Do the job for every item; results as they come."""
        if self.workers == 1 or len(items) <= 1:
            with one_thread():
                for item in items:
                    yield item, job(item, progress)
            return
        left = dict(enumerate(items))
        for _ in range(RETRIES):  # a worker that dies takes its pool with it: nobody knows at which piece
            for place, result in self._done(job, left, progress):
                yield left.pop(place), result
            if not left:
                return
        aside = []
        for item in left.values():  # one by one, it is known
            found = self._alone(job, item, progress)
            aside += [] if found else [item]
            yield from found
        if aside:
            raise SetAsideError(aside, len(items))

    def _alone(self, job: Job[Item, JobResult], item: Item, progress: Progress) -> list[tuple[Item, JobResult]]:
        """A piece while nothing else is done, whole or else in halves, with its result; nothing if it kills."""
        smaller = halve(item)
        for piece in (item,) if smaller is None else (item, smaller):
            for _, result in self._done(job, {0: piece}, progress):
                return [(piece, result)]
        return []

    def _done(
        self, job: Job[Item, JobResult], items: dict[int, Item], progress: Progress
    ) -> Iterator[tuple[int, JobResult]]:
        """The pieces that are done until a worker dies."""
        pool, self._asked = self._started(), True
        with _heard(self._queue, progress):
            waiting = {pool.submit(_work, job, item): place for place, item in items.items()}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            except BrokenProcessPool:
                self._pool = None
            finally:
                for future in waiting:
                    future.cancel()

    def warm(self, job: Job[Item, None], item: Item) -> None:
        """Let every worker start and prepare itself by a job while this process does what it alone can do.

        The last one begins when another is ready: this process needs a core, too.
        """
        if self.workers > 1:
            pool, self._asked = self._started(), False
            first, *_ = [pool.submit(_work, job, item) for _ in range(self.workers - 1)]
            first.add_done_callback(partial(self._go_on, pool, job, item))

    def _go_on(self, pool: ProcessPoolExecutor, job: Job[Item, None], item: Item, done: "Future[None]") -> None:
        """One worker more, unless the work is over, or has begun: whoever works gets ready on the way."""
        if not (done.cancelled() or self._asked):
            with suppress(RuntimeError):  # what a pool says that is closed, or whose worker died
                pool.submit(_work, job, item)

    def reach(self, folder: Path | None, files: Sequence[Path]) -> None:
        """Workers on this machine see what this process sees."""

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._context = Workers()
            self._queue = self._context.Queue()
            self._pool = ProcessPoolExecutor(
                self.workers, self._context, _start_worker, (self._queue, dict(os.environ))
            )
        return self._pool

    def close(self) -> None:
        """Let the workers go."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind
        for worker in self._context.started:
            if worker.pid is not None:  # else it could not be started
                worker.kill()  # finished stages are on disk; nobody waits for the others, nor a second for torch to end
        self.close()


def _start_worker(messages: "Queue[tuple[str, int, int] | None]", environment: dict[str, str]) -> None:
    global _messages
    _messages = messages
    torch.set_num_threads(1)
    settle(environment)


_told: dict[str, float] = {}  # in a worker: when each piece of work last spoke


def _tell(label: str, done: int, total: int, every: float = 0.1) -> None:
    """Pass progress on to the parent, at most ten times a second for each piece of work."""
    now = time.monotonic()
    if _messages is not None and (done == total or now - _told.get(label, 0.0) > every):
        _told[label] = now
        _messages.put((label, done, total))


def _work(job: Job[Any, Any], item: Any) -> Any:
    return job(item, _tell)


@contextmanager
def _heard(queue: "Queue[tuple[str, int, int] | None] | None", progress: Progress) -> Iterator[None]:
    """A thread here passes on what the workers tell."""
    assert queue is not None
    listener = threading.Thread(target=partial(_listen, queue, progress), daemon=True)
    listener.start()
    try:
        yield
    finally:
        queue.put(None)
        listener.join()


def _listen(queue: "Queue[tuple[str, int, int] | None]", progress: Progress) -> None:
    while (message := queue.get()) is not None:
        progress(*message)
