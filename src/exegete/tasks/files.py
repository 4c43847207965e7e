"""Your own files: `file:reviews.csv` (csv, tsv, jsonl, plain or gzipped, and parquet) with named columns.

A second column of texts makes pairs. A folder is one of `.question` files, as CNN and Daily Mail have them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks import question_files
from exegete.tasks.example import Task
from exegete.tasks.prepare import SPLITS, SourceRow, left_out, prepare
from exegete.tasks.records import record
from exegete.tasks.settings import PairSource, check_pair
from exegete.tasks.tables import PlacedRow, format_of

SPLIT_NAMES = {"training": "train", "validation": "dev", "valid": "dev", "val": "dev"} | {s: s for s in SPLITS}


class FileTask(PairSource):
    """A file of labelled texts or pairs of texts, or one per split, or one with a column that names the split.

    A field `rationale` (jsonl, parquet) may list `[start, end)` spans over the white-space words of the text, of a pair
    over those of both texts, one after the other; a field `candidates` the answers that a question has.
    """

    text: str = "text"  # names of columns
    question: str | None = None  # the second text of a pair
    label: str = "label"
    split: str | None = None
    unlabelled: Literal["refuse", "drop"] = "refuse"  # rows without a class
    dev: Path | None = None  # paths of further files
    test: Path | None = None

    def task(self, spec: Spec) -> Task:
        """Read the file or folder that `file:PATH` names, and the files of dev and test."""
        if (home := Path(spec.name.removeprefix("file:")).expanduser()).is_dir():
            return self._questions(home, spec)
        check_pair(self)
        named = {"train": home, "dev": self.dev, "test": self.test}
        files = {split: path.expanduser() for split, path in named.items() if path}
        if self.split and len(files) > 1:
            raise UsageError("give either split=COLUMN or the files dev= and test=, not both")
        from exegete.tasks.spooling import is_large, spooled  # it needs numpy, and listings don't

        if is_large(files.values()) and not (self.planting or self._has_candidates(files)):
            return spooled(spec, files, self, partial(self._rows, files), self._unlabelled)
        rows, notes = self._read(files)
        return prepare(str(spec), rows, self, ", ".join(path.name for path in files.values()), notes)

    def _read(self, files: Mapping[str, Path]) -> tuple[dict[str, list[SourceRow]], list[str]]:
        """The rows of every split, and what was left out."""
        rows: dict[str, list[SourceRow]] = defaultdict(list)
        dropped: Counter[str] = Counter()
        for split, row in self._rows(files, dropped):
            rows[split].append(row)
        return rows, [left_out(count, "row", split, self._unlabelled) for split, count in dropped.items()]

    def _rows(self, files: Mapping[str, Path], dropped: Counter[str]) -> Iterator[tuple[str, SourceRow]]:
        """Every row with its split, by file or by a column; those without a class are counted."""
        for split, path in files.items():
            for row, found in enumerate(self._places(path)):
                where = split_name(found, self.split) if self.split else split
                if self._has_class(found):
                    yield where, SourceRow(row, record(found.fields, found.where, self.text, self.label, self.question))
                else:
                    dropped[where] += 1

    @property
    def _unlabelled(self) -> str:
        return f": no '{self.label}'"

    def _has_candidates(self, files: Mapping[str, Path]) -> bool:
        """Whether answers to choose from may be given: then classes are known only once all rows were read."""
        return bool(self.question) and any("candidates" in format_of(path).columns(path) for path in files.values())

    def _has_class(self, found: PlacedRow) -> bool:
        label = found.fields.get(self.label)
        empty = label is None or (isinstance(label, str) and not label.strip())
        if empty and self.unlabelled == "refuse":
            raise ExegeteError(
                f"{found.where}: '{self.label}' is empty: give the row a class, or leave out every row that has none "
                "with unlabelled=drop"
            )
        return not empty

    def _questions(self, home: Path, spec: Spec) -> Task:
        """The questions of a folder, whose words are cut at white space already."""
        for setting in ("text", "question", "label", "split", "dev", "test"):
            if setting in spec.settings:
                raise UsageError(f"{home} is a folder of .question files, which have no columns: leave {setting}= out")
        settings = self if "tokenizer" in spec.settings else self.model_copy(update={"tokenizer": "whitespace"})
        return prepare(str(spec), question_files.read(home, SPLIT_NAMES), settings, home.name)

    def _places(self, path: Path) -> Iterator[PlacedRow]:
        """The rows of a file, once its columns are known to be there."""
        format_ = format_of(path)
        named = {"text": self.text, "question": self.question, "label": self.label, "split": self.split}
        asked = {setting: column for setting, column in named.items() if column}
        _check_columns(path, format_.columns(path), asked)
        return format_.rows(path, [*asked.values(), "rationale", "candidates"])


def _check_columns(path: Path, columns: Sequence[str], asked: dict[str, str]) -> None:
    if not columns:
        raise ExegeteError(f"{path} is empty: give it a row for every example")
    for setting, column in asked.items():
        if column not in columns:
            raise UsageError(f"{unknown(f'column of {path.name}', column, columns)} (write {setting}=COLUMN)")


def split_name(found: PlacedRow, column: str) -> str:
    """Train, dev or test, from the words that people use for them."""
    written = str(found.fields.get(column) or "").strip().lower()
    if written not in SPLIT_NAMES:
        raise ExegeteError(f"{found.where}: '{column}' is '{written}': write train, dev or test")
    return SPLIT_NAMES[written]
