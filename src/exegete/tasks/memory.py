"""Memory: a task from a frame or from lists, by the same steps as from a file.

Its texts are kept as they were given, so that `deposited` can write them to a file which `file:` reads as the same
task: workers, and the command line, know it by that name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from exegete.base.errors import UsageError, unknown
from exegete.base.files import whole_file
from exegete.base.names import Spec
from exegete.tasks.catalogue import check_task
from exegete.tasks.example import Task
from exegete.tasks.files import FileTask
from exegete.tasks.prepare import prepare
from exegete.tasks.records import is_missing, whole_characters
from exegete.tasks.tables import PlacedRow

ORIGIN = "memory"


@dataclass(frozen=True)
class MemoryTask(Task):
    """A task whose texts were given in Python."""

    frame: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False, compare=False)  # as given, columns as we say
    settings: Mapping[str, str] = field(default_factory=dict)

    def as_written(self, tokenizer: str, lower: bool) -> "MemoryTask":
        """The task with its texts cut and written in this way, unless its settings say otherwise."""
        asked: dict[str, Any] = {"tokenizer": tokenizer, "lower": lower}
        if all(getattr(self, key) == value or key in self.settings for key, value in asked.items()):
            return self
        return _prepared(self.frame, self.name, asked | dict(self.settings))

    def deposited(self, folder: Path) -> str:
        """The name of the same task in a file of this folder, which is written unless it is there."""
        path = folder / f"{self.name}-{self.hash}.parquet"
        if ":" in str(path):
            raise UsageError(f"a folder with ':' in its name can't be named in a task: choose another than {folder}")
        if not path.is_file():
            with whole_file(path) as beside:
                self.frame.write_parquet(beside)
        return str(Spec(f"file:{path}", dict(self.settings)))


def task_from_frame(
    frame: Any, columns: Mapping[str, str | None], name: str, settings: Mapping[str, Any]
) -> MemoryTask:
    """A task from a pandas or polars frame; `columns` says which of its columns are text, label, question, …

    `rationale`, `candidates` and `split` are taken where the frame has columns of these names, unless others are named.
    """
    frame = _collected(frame) if isinstance(frame, pl.LazyFrame) else frame
    found = [str(column) for column in getattr(frame, "columns", ())]
    if not found:
        raise UsageError(f"a task is a name, a frame with columns, or texts= and labels=, not {type(frame).__name__}")
    named = {role: column or role for role, column in columns.items() if column or role in found}
    for role, column in named.items():
        if column not in found:
            raise UsageError(f"{unknown('column of the frame', column, found)} (write {role}=COLUMN)")
        if found.count(column) > 1:
            raise UsageError(f"two columns of the frame are called '{column}': rename one")
    return _prepared(_frame({role: frame[column] for role, column in named.items()}), name, settings)


def task_of_lists(lists: Mapping[str, Sequence[Any] | None], name: str, settings: Mapping[str, Any]) -> MemoryTask:
    """A task from lists of equal length: texts, labels, and perhaps more."""
    given = {role: values for role, values in lists.items() if values is not None}
    if "text" not in given:
        raise UsageError("texts= is missing: give texts= and labels=, one label for every text")
    settings = dict(settings) if "label" in given else {"unlabelled": "keep", **settings}
    for role, values in given.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise UsageError(f"{role}s is a list, not {values!r:.40}")
        if len(values) != len(given["text"]):
            raise UsageError(f"there are {len(given['text']):,} texts and {len(values):,} {role}s: give one for each")
    return _prepared(_frame(given), name, settings)


def _collected(frame: pl.LazyFrame) -> pl.DataFrame:
    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(f"the lazy frame can't be collected ({first}): see that its source is there") from None


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    try:
        return pl.DataFrame({role: _values(values) for role, values in columns.items()})
    except (TypeError, pl.exceptions.PolarsError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(f"texts, labels and rationales must be of one type each ({first}): convert them") from None


def _values(column: Any) -> list[Any]:
    """The values of a list, an array or a column: what is missing is None, and characters are whole."""
    values = column.tolist() if hasattr(column, "tolist") else column
    clean = (None if is_missing(value) else value for value in values)
    return [whole_characters(value) if isinstance(value, str) else value for value in clean]


def _prepared(frame: pl.DataFrame, name: str, settings: Mapping[str, Any]) -> MemoryTask:
    said = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
    said |= {role: role for role in ("question", "split") if role in frame.columns}
    read: FileTask = check_task(str(Spec(f"file:{name}", said)))
    places = (PlacedRow(f"row {row + 1} of '{name}'", fields) for row, fields in enumerate(frame.iter_rows(named=True)))
    if read.unlabelled == "keep":
        made = read.unlabelled_task(name, places, ORIGIN)
    else:
        rows, notes = read.by_split(("train", row, place) for row, place in enumerate(places))
        made = prepare(name, rows, read, ORIGIN, notes)
    return MemoryTask(**vars(made), frame=frame, settings=said)
