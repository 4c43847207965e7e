"""The data folder: data sets as folders of train, dev and test `.jsonl.gz` files at EXEGETE_DATA."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exegete.base.errors import ExegeteError
from exegete.tasks.example import Record
from exegete.tasks.prepare import SourceRow
from exegete.tasks.records import record
from exegete.tasks.splits import SPLITS
from exegete.tasks.text_files import read_jsonl
from exegete.tasks.word_labels import NOTE, with_weak_rationale

VARIABLE = "EXEGETE_DATA"
Making = Callable[[Mapping[str, Any], str], Record]


def data_folder() -> Path | None:
    """The folder that EXEGETE_DATA names, or None where it is not set.

    A name that leads nowhere is an error: to go on without it could silently give other data of the same name.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise ExegeteError(f"{VARIABLE} is set to '{named}', which is not a folder: correct it or unset it")
    return folder


def has(name: str) -> bool:
    """Whether the data folder holds this data set."""
    folder = data_folder()
    return folder is not None and (folder / name).is_dir()


def files(name: str) -> tuple[Path, ...]:
    """The files of a data set."""
    found = [(data_folder() or Path()) / name / f"{split}.jsonl.gz" for split in SPLITS]
    return tuple(path for path in found if path.is_file())


def read_folder(name: str, subset: str = "all", make: Making = record) -> dict[str, Iterator[SourceRow]]:
    """The rows of every split that is there; a `subset` (jw) keeps the rows whose field of that name is 1.

    `make` builds a record of a line's fields and its place.
    """
    found = {path.name.partition(".")[0]: path for path in files(name)}
    if "train" not in found:
        raise ExegeteError(f"{VARIABLE}/{name} has no train.jsonl.gz: see that the data set is whole")
    return {split: _rows(path, subset, make) for split, path in found.items()}


def _rows(path: Path, subset: str, make: Making) -> Iterator[SourceRow]:
    """Rows of one file, one at a time."""
    for row, (line, fields) in enumerate(read_jsonl(path)):
        if subset == "all" or fields.get(subset) == 1:
            where = f"{path}, line {line}"
            yield SourceRow(row, with_weak_rationale(make(fields, where), fields, where))


def folder_notes(name: str) -> tuple[str, ...]:
    """What is different about this data set: rationales that are only weak ones."""
    first = next(read_jsonl((data_folder() or Path()) / name / "train.jsonl.gz"), (0, {}))[1]
    return (NOTE,) if "word_labels" in first and "rationale" not in first else ()
