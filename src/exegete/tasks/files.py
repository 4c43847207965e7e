"""Your own files: `file:reviews.csv` (csv, tsv, jsonl, plain or gzipped, and parquet) with named columns."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks.example import Task
from exegete.tasks.prepare import SPLITS, Row, prepare
from exegete.tasks.records import record
from exegete.tasks.settings import Source
from exegete.tasks.tables import Place, format_of

SPLIT_NAMES = {"training": "train", "validation": "dev", "valid": "dev", "val": "dev"} | {s: s for s in SPLITS}


class FileTask(Source):
    """A file of labelled texts, or one per split, or one with a column that names the split.

    A field `rationale` (jsonl, parquet) may list `[start, end)` spans over the white-space words of the text.
    """

    text: str = "text"  # names of columns
    label: str = "label"
    split: str | None = None
    dev: Path | None = None  # paths of further files
    test: Path | None = None

    def task(self, spec: Spec) -> Task:
        """Read the file that `file:PATH` names, and those of dev and test."""
        named = {"train": Path(spec.name.removeprefix("file:")), "dev": self.dev, "test": self.test}
        files = {split: path.expanduser() for split, path in named.items() if path}
        if self.split and len(files) > 1:
            raise UsageError("give either split=COLUMN or the files dev= and test=, not both")
        rows = {split: self._rows(path) for split, path in files.items()}
        origin = ", ".join(path.name for path in files.values())
        return prepare(str(spec), self._by_column(files["train"]) if self.split else rows, self, origin)

    def _rows(self, path: Path) -> Iterator[Row]:
        for row, found in enumerate(self._places(path)):
            yield Row(row, record(found.fields, found.where, self.text, self.label))

    def _by_column(self, path: Path) -> dict[str, list[Row]]:
        """The rows of one file, sorted into splits by a column."""
        splits: dict[str, list[Row]] = defaultdict(list)
        for row, found in enumerate(self._places(path)):
            split = _split_name(found, self.split or "")
            splits[split].append(Row(row, record(found.fields, found.where, self.text, self.label)))
        return splits

    def _places(self, path: Path) -> Iterator[Place]:
        """The rows of a file, once its columns are known to be there."""
        format_ = format_of(path)
        asked = {"text": self.text, "label": self.label} | ({"split": self.split} if self.split else {})
        _check_columns(path, format_.columns(path), asked)
        return format_.rows(path, [*asked.values(), "rationale"])


def _check_columns(path: Path, columns: Sequence[str], asked: dict[str, str]) -> None:
    if not columns:
        raise ExegeteError(f"{path} is empty: give it a row for every example")
    for setting, column in asked.items():
        if column not in columns:
            raise UsageError(f"{unknown(f'column of {path.name}', column, columns)} (write {setting}=COLUMN)")


def _split_name(found: Place, column: str) -> str:
    """Train, dev or test, from the words that people use for them."""
    written = str(found.fields.get(column) or "").strip().lower()
    if written not in SPLIT_NAMES:
        raise ExegeteError(f"{found.where}: '{column}' is '{written}': write train, dev or test")
    return SPLIT_NAMES[written]
