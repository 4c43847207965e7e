"""Your own files: `file:reviews.csv` (csv, tsv, jsonl, plain or gzipped, and parquet) with named columns.

A second column of texts makes pairs. A folder is one of `.question` files, as CNN and Daily Mail have them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from exegete.base.arguments import show_value
from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks import question_files
from exegete.tasks.example import Task
from exegete.tasks.prepare import SourceRow, prepare, prepare_unlabelled
from exegete.tasks.records import has_class, record
from exegete.tasks.settings import PairSource, check_pair
from exegete.tasks.splits import SPLITS, left_out
from exegete.tasks.tables import PLAIN, PlacedRow, format_of

SPLIT_NAMES = {"training": "train", "validation": "dev", "valid": "dev", "val": "dev"} | {s: s for s in SPLITS}
SHOWN = 5  # rows without a class that are named
NAME = 6  # words that the name of a column may have


class FileTask(PairSource):
    """A file of labelled texts or pairs of texts, or one per split, or one with a column that names the split.

    A field `rationale` may list places of white-space words of the text, or `[start, end)` spans of them (of a pair
    they count the words of both texts, one after the other); a field `candidates` the answers that a question has.
    """

    text: str = "text"  # names of columns
    question: str | None = None  # the second text of a pair
    label: str = "label"
    split: str | None = None
    unlabelled: Literal["refuse", "drop", "keep"] = "refuse"  # rows without a class; keep: all texts, labels unread
    dev: Path | None = None  # paths of further files
    test: Path | None = None

    @property
    def split_column(self) -> str | None:
        """As named."""
        return self.split

    def task(self, spec: Spec) -> Task:
        """Read the file or folder that `file:PATH` names, and the files of dev and test."""
        if (home := Path(spec.name.removeprefix("file:")).expanduser()).is_dir():
            return self._questions(home, spec)
        check_pair(self)
        files = self.files(spec)
        if self.unlabelled == "keep" or any(path.name.endswith(PLAIN) for path in files.values()):
            return self._without_labels(str(spec), files)
        if self.split and len(files) > 1:
            raise UsageError("give either split=COLUMN or the files dev= and test=, not both")
        from exegete.tasks.spool import is_large, spool_task  # it needs numpy, and listings don't

        if is_large(files.values()) and not (self.planting or self._has_candidates(files)):
            return spool_task(spec, files, self, partial(self.labelled, self._found(files)), self._unlabelled)
        rows, notes = self.by_split(self._found(files))
        return prepare(str(spec), rows, self, ", ".join(path.name for path in files.values()), notes)

    def _without_labels(self, name: str, files: Mapping[str, Path]) -> Task:
        """The texts of one file, of which nobody said their classes."""
        if len(files) > 1 or self.split:
            raise UsageError("texts without labels are cut into splits by hash: leave split=, dev= and test= out")
        (path,) = files.values()
        return self.unlabelled_task(name, self.model_copy(update={"label": ""})._places(path), path.name)

    def unlabelled_task(self, name: str, places: Iterable[PlacedRow], origin: str) -> Task:
        """A task of rows whose labels are not read."""
        rows = (
            SourceRow(row, record(fields, where, self.text, "", self.question))
            for row, (where, fields) in enumerate(places)
        )
        return prepare_unlabelled(name, rows, self, origin)

    def files(self, spec: Spec) -> dict[str, Path]:
        """The file of every split that has one."""
        named = {"train": Path(spec.name.removeprefix("file:")), "dev": self.dev, "test": self.test}
        return {split: path.expanduser() for split, path in named.items() if path}

    def by_split(self, found: Iterable[tuple[str, int, PlacedRow]]) -> tuple[dict[str, list[SourceRow]], list[str]]:
        """The rows of every split, and what was left out."""
        rows: dict[str, list[SourceRow]] = defaultdict(list)
        dropped: Counter[str] = Counter()
        for split, row in self.labelled(found, dropped):
            rows[split].append(row)
        return rows, [left_out(count, "row", split, self._unlabelled) for split, count in dropped.items()]

    def _found(self, files: Mapping[str, Path]) -> Iterator[tuple[str, int, PlacedRow]]:
        """Every row of some files, with the file's split and its number there."""
        return ((split, row, place) for split, path in files.items() for row, place in enumerate(self._places(path)))

    def labelled(
        self, found: Iterable[tuple[str, int, PlacedRow]], dropped: Counter[str]
    ) -> Iterator[tuple[str, SourceRow]]:
        """Rows with their splits, by file or by a column; those without a class are counted, or else refused."""
        total = 0
        first: list[str] = []  # without a class
        for file, row, (where, fields) in found:
            total += 1
            split = split_name(fields, where, self.split) if self.split else file
            if not has_class(fields.get(self.label)):
                dropped[split] += 1
                first += [where] if len(first) < SHOWN else []
            elif self.unlabelled == "drop" or not first:  # else all that is left to do is to count
                yield split, SourceRow(row, record(fields, where, self.text, self.label, self.question))
        if total and dropped.total() == total:
            raise UsageError(f"no row has a '{self.label}': name the column of classes with label=COLUMN")
        if first and self.unlabelled == "refuse":
            raise _without_class(self.label, first, dropped.total())

    @property
    def _unlabelled(self) -> str:
        return f": no '{self.label}'"

    def _has_candidates(self, files: Mapping[str, Path]) -> bool:
        """Whether answers to choose from may be given: then classes are known only once all rows were read."""
        return bool(self.question) and any("candidates" in format_of(path).columns(path) for path in files.values())

    def _questions(self, home: Path, spec: Spec) -> Task:
        """The questions of a folder, whose words are cut at white space already."""
        for setting in ("text", "question", "label", "split", "dev", "test"):
            if setting in spec.settings:
                raise UsageError(f"{home} is a folder of .question files, which have no columns: leave {setting}= out")
        settings = self if "tokenizer" in spec.settings else self.model_copy(update={"tokenizer": "whitespace"})
        return prepare(str(spec), question_files.read_question_files(home, SPLIT_NAMES), settings, home.name)

    def _places(self, path: Path) -> Iterator[PlacedRow]:
        """The rows of a file, once its columns are known to be there."""
        format_ = format_of(path)
        named = {"text": self.text, "question": self.question, "label": self.label, "split": self.split}
        asked = {setting: column for setting, column in named.items() if column}
        _check_columns(path, format_.columns(path), asked)
        return format_.rows(path, [*asked.values(), "rationale", "candidates"])


def _without_class(column: str, first: Sequence[str], count: int) -> ExegeteError:
    """What is wrong with rows that have no class: where the first are, and how many."""
    lines = ", ".join(where.rpartition(", ")[2].partition(" of ")[0] for where in first)
    every = (
        f"{count:,} rows have none ({lines}{', …' if count > len(first) else ''}): give them"
        if count > 1
        else "give it"
    )
    return ExegeteError(
        f"{first[0]}: '{column}' is empty: {every} a class, or leave out every row that has none with unlabelled=drop"
    )


def _check_columns(path: Path, columns: Sequence[str], asked: dict[str, str]) -> None:
    if not columns:
        raise ExegeteError(f"{path} is empty: give it a row for every example")
    for setting, column in asked.items():
        if column not in columns and _is_data(path, columns):
            first = ", ".join(map(show_value, columns))
            raise UsageError(
                f"{path.name} has no header: its first line ({first:.80}) looks like a row: "
                f"write the names of the columns above it, as {','.join(asked.values())}"
            )
        if column not in columns:
            raise UsageError(f"{unknown(f'column of {path.name}', column, columns)} (write {setting}=COLUMN)")


def _is_data(path: Path, columns: Sequence[str]) -> bool:
    """Whether the first line of a csv or tsv file is a row: no column is called by a number or a long sentence."""
    numbers = any(column.strip().lstrip("-").replace(".", "", 1).isdecimal() for column in columns)
    return format_of(path).header and (numbers or any(len(column.split()) > NAME for column in columns))


def split_name(fields: Mapping[str, Any], where: str, column: str) -> str:
    """Train, dev or test, from the words that people use for them."""
    written = str(fields.get(column) or "").strip().lower()
    if written not in SPLIT_NAMES:
        raise ExegeteError(f"{where}: '{column}' is '{written}': write train, dev or test")
    return SPLIT_NAMES[written]


def name_of_texts(path: Path) -> str:
    """The task of a file of texts, as a command's argument: labelled where it has a column `label`, else not.

    A single column is the texts', whatever it is called.
    """
    settings: dict[str, str] = {}
    columns = format_of(path).columns(path) if path.is_file() else ["text", "label"]
    if "label" not in columns and not path.name.endswith(PLAIN):
        settings["unlabelled"] = "keep"
    if "text" not in columns and len(columns) == 1:
        settings["text"] = columns[0]
    return str(Spec(f"file:{path}", settings))
