"""Pieces: the work of cells, cut so that every worker is busy, and handed to an engine queue after queue."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

from exegete.base.names import parse
from exegete.base.processes import at_most
from exegete.base.progress import Progress, Speaking, heard
from exegete.experiments.common.contract import Growing
from exegete.models.ours.module import hashed_once
from exegete.report.drawing import get_ready
from exegete.runs.cell import (
    apart,
    ask_piece,
    check_cell_data,
    companion_jobs,
    prepare_cell,
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
        """The piece with its texts asked about in halves; a training has no halves that would learn the same."""
        can = self.job in (ask_piece, run_cell) and not self.work.halves
        return self._replace(work=self.work._replace(halves=True)) if can else None


RowsByCell = dict[Cell, list[FoundRows]]


class Grow(Protocol):
    """More texts for the experiments that grow."""

    def trained(self) -> None:
        """Hear that the only model is trained, and questions begin."""

    def __call__(self, jobs: list[Work], known: Mapping[Cell, Sequence[FoundRows]]) -> list[Work] | None:
        """From the jobs so far and what is known of their cells, jobs that ask more; None where it is enough."""


class Worked(NamedTuple):
    """What was asked in the end, and the pieces that were set aside; of their cells nothing further is asked."""

    jobs: list[Work]
    aside: list[Piece]


def work_through(jobs: list[Work], running: Engine, progress: Progress, grow: Grow | None = None) -> Worked:
    """All queues; what is found of a cell is known to its later pieces, and what a person must know is said.

    Before cells are put together, more texts may be asked of what grows, step by step.
    """
    check_tasks(jobs, running, progress)
    if len(jobs) == 1:  # its model is trained here, and then everybody is needed
        running.warm(_prepare, jobs[0])
    known: RowsByCell = {}
    aside: list[Piece] = []
    every = queues(jobs, running.workers, isinstance(progress, Speaking), grow is not None)
    *before, last = every if grow is not None else [*every, []]
    for number, pieces in enumerate(before):
        if grow is not None and number == 1 and len(jobs) == 1:
            grow.trained()
        aside += _work_off(pieces, known, aside, running, progress)
    while grow is not None and not aside and (more := grow(jobs, known)) is not None:
        jobs = more
        aside += _work_off(growing(jobs), known, aside, running, progress)
    if grow is not None:
        last = [Piece(run_cell, work) for work in jobs]
    aside += _work_off(last, known, aside, running, progress)
    return Worked(jobs, aside)


def _work_off(
    pieces: Sequence[Piece], known: RowsByCell, aside: Sequence[Piece], running: Engine, progress: Progress
) -> list[Piece]:
    """One queue; returns the pieces of it that were set aside."""
    lost = {piece.work.cell for piece in aside}
    left = [_informed(piece, known) for piece in pieces if piece.work.cell not in lost]
    try:
        for piece, found in running.map(_done, left, progress) if left else ():
            if isinstance(found, FoundRows):
                known.setdefault(piece.work.cell, []).append(found)
            elif isinstance(found, str) and found and isinstance(progress, Speaking):
                progress.say(found)
    except SetAsideError as error:
        return [piece for piece in error.pieces if isinstance(piece, Piece)]
    return []


def growing(jobs: Sequence[Work]) -> list[Piece]:
    """The questions that more texts can be asked, of the split that they are asked about."""
    parts = (part for part in apart(jobs) if part.split == part.study.split)
    return [Piece(ask_piece, part) for part in parts if isinstance(_built(part), Growing)]


def _built(part: Work) -> Any:
    return part.study.built_experiments(part.cell.task)[part.part]


def check_tasks(jobs: Sequence[Work], running: Engine, progress: Progress) -> None:
    """Read the texts of every task, and say what must be known of them; planted words make no other texts."""
    every = {work.cell.task: work for work in reversed(jobs) if "planted" not in parse(work.cell.task).settings}
    pieces = [Piece(check_cell_data, work) for work in reversed(every.values())]
    for piece in pieces:
        tell_size(piece.work.cell.task, progress)
    with at_most(running.workers):
        for piece, check in running.map(_done, pieces, progress):
            tell_check(piece.work.cell.task, check, progress)


def _informed(piece: Piece, known: Mapping[Cell, list[FoundRows]]) -> Piece:
    """A piece that knows what was found of its cell."""
    return piece._replace(work=piece.work._replace(found=tuple(known.get(piece.work.cell, ()))))


def _done(piece: Piece, progress: Progress) -> Any:
    work = piece.work._replace(progress=progress)
    with hashed_once(), heard(work.tell), in_step(work.address) if work.address else nullcontext(work.run) as run:
        return piece.job(work._replace(run=run))


def _prepare(work: Work, progress: Progress) -> None:
    """What a worker needs whatever it is asked: the texts, and what draws."""
    del progress
    prepare_cell(work)
    get_ready()


def queues(jobs: list[Work], workers: int, told: bool, grows: bool = False) -> list[list[Piece]]:
    """What is done side by side, queue after queue; cells too few to keep every worker busy are taken apart.

    A queue has no steps: a piece that needs a model which another worker is training waits for it, and whoever is free
    takes the next. Where somebody is told how well models predict, they are trained before anything is asked of them;
    a single one in this process, which is warm already. Where more texts may be asked of some questions, these are
    asked before the rest, and cells come last.
    """
    bases, whole = ([Piece(job, work) for work in jobs] for job in (train_base, run_cell))
    beside = [Piece(train_companions, part) for part in companion_jobs(jobs)]
    parts = [Piece(ask_piece, part) for part in apart(jobs)] if workers > 1 and len(jobs) < 2 * workers else []
    if grows and not parts:
        return [bases, growing(jobs), whole]
    first = bases if told or beside or parts else []
    if len(jobs) == 1:
        return [first, beside + parts, whole]
    return [first + beside + parts, whole] if parts else [first + beside + whole]
