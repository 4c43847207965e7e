"""Pieces: the work of cells, cut so that every worker is busy, and handed to an engine queue after queue."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from exegete.base.names import parse
from exegete.base.progress import Progress, Speaking
from exegete.models.ours.module import hashed_once
from exegete.page.drawing import get_ready
from exegete.runs.cell import (
    accompanied,
    apart,
    ask_piece,
    check_task,
    prepare,
    run_cell,
    train_base,
    train_companions,
)
from exegete.runs.data import tell_check, tell_size
from exegete.runs.engine.contract import Engine, SetAsideError
from exegete.runs.remote import in_step
from exegete.runs.study import Cell, FoundRows, Work


class Piece(NamedTuple):
    """A part of a cell's work, and what does it."""

    job: Callable[[Work], Any]
    work: Work

    def __str__(self) -> str:
        return str(self.work)

    def halved(self) -> "Piece | None":
        """The same with its texts asked about in halves; a training has no halves that would learn the same."""
        can = self.job in (ask_piece, run_cell) and not self.work.halves
        return self._replace(work=self.work._replace(halves=True)) if can else None


def work_through(jobs: list[Work], running: Engine, progress: Progress) -> list[Piece]:
    """All queues; what is found of a cell is known to its later pieces, and what a person must know is said.

    Returns the pieces that were set aside; of their cells nothing further is asked.
    """
    check_tasks(jobs, running, progress)
    if len(jobs) == 1:  # its model is trained here, and then everybody is needed
        running.warm(_prepare, jobs[0])
    known: dict[Cell, list[FoundRows]] = {}
    aside: list[Piece] = []
    for pieces in queues(jobs, running.workers, isinstance(progress, Speaking)):
        lost = {piece.work.cell for piece in aside}
        left = [_informed(piece, known) for piece in pieces if piece.work.cell not in lost]
        try:
            for piece, found in running.map(_done, left, progress):
                if isinstance(found, FoundRows):
                    known.setdefault(piece.work.cell, []).append(found)
                elif isinstance(found, str) and found and isinstance(progress, Speaking):
                    progress.say(found)
        except SetAsideError as error:
            aside += [piece for piece in error.pieces if isinstance(piece, Piece)]
    return aside


def check_tasks(jobs: Sequence[Work], running: Engine, progress: Progress) -> None:
    """Read the texts of every task, and say what must be known of them; planted words make no other texts."""
    every = {work.cell.task: work for work in reversed(jobs) if "planted" not in parse(work.cell.task).settings}
    pieces = [Piece(check_task, work) for work in reversed(every.values())]
    for piece in pieces:
        tell_size(piece.work.cell.task, progress)
    for piece, check in running.map(_done, pieces, progress):
        tell_check(piece.work.cell.task, check, progress)


def _informed(piece: Piece, known: Mapping[Cell, list[FoundRows]]) -> Piece:
    """A piece that knows what was found of its cell."""
    return piece._replace(work=piece.work._replace(found=tuple(known.get(piece.work.cell, ()))))


def _done(piece: Piece, progress: Progress) -> Any:
    work = piece.work
    with hashed_once(), in_step(work.address) if work.address else nullcontext(work.run) as run:
        return piece.job(work._replace(run=run, progress=progress))


def _prepare(work: Work, progress: Progress) -> None:
    """What a worker needs whatever it is asked: the texts, and what draws."""
    del progress
    prepare(work)
    get_ready()


def queues(jobs: list[Work], workers: int, told: bool) -> list[list[Piece]]:
    """What is done side by side, queue after queue; cells too few to keep every worker busy are taken apart.

    A queue has no steps: a piece that needs a model which another worker is training waits for it, and whoever is free
    takes the next. Where somebody is told how well models predict, they are trained before anything is asked of them;
    a single one in this process, which is warm already.
    """
    bases, whole = ([Piece(job, work) for work in jobs] for job in (train_base, run_cell))
    beside = [Piece(train_companions, part) for part in accompanied(jobs)]
    parts = [Piece(ask_piece, part) for part in apart(jobs)] if workers > 1 and len(jobs) < 2 * workers else []
    first = bases if told or beside or parts else []
    if len(jobs) == 1:
        return [first, beside + parts, whole]
    return [first + beside + parts, whole] if parts else [first + beside + whole]
