"""Data: what must be known of a task's texts, said before a model is trained on them."""

import warnings

from exegete.base.errors import DataWarning
from exegete.base.heartbeat import Heartbeat
from exegete.base.names import parse
from exegete.base.progress import Progress, Speaking
from exegete.tasks.catalogue import check_task, files_of
from exegete.tasks.data_check import DataCheck
from exegete.tasks.example import Task
from exegete.tasks.files import FileTask
from exegete.tasks.spool import announcement


def tell_size(task: str, progress: Progress) -> None:
    """Say how large the files of a task are, and how long it takes to read them, where that takes a while."""
    settings = check_task(task)
    if isinstance(settings, FileTask) and isinstance(progress, Speaking) and files_of(task) is not None:
        sentence = announcement(parse(task), settings.files(parse(task)))
        if sentence:
            progress.say(sentence)


def tell_check(task: str, check: DataCheck | None, progress: Progress) -> None:
    """Show what was counted in a task, and its warnings: to who listens, or else as warnings of Python."""
    if check is None:
        return
    if isinstance(progress, Speaking) and not (isinstance(progress, Heartbeat) or getattr(progress, "quiet", False)):
        progress.say(f"the texts of {parse(task).name}:\n{check}")
        for sentence in check.warnings:
            progress.say(sentence)
        return
    for sentence in check.warnings:
        warnings.warn(f"{task}: {sentence}", DataWarning, stacklevel=2)


def notes_of(task: Task) -> tuple[str, ...]:
    """What a reader must know of a task's texts: what was left out, and what its check warns of."""
    return (*task.notes, *(task.check.warnings if task.check is not None else ()))
