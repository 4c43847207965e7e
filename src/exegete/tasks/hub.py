"""The Hugging Face hub: `hf:owner/name` through `datasets`, or a local folder that it can load."""

from collections.abc import Iterator, Mapping
from typing import Any

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.extras import install
from exegete.base.names import Spec
from exegete.tasks.example import Task
from exegete.tasks.files import SPLIT_NAMES
from exegete.tasks.prepare import SourceRow, prepare
from exegete.tasks.records import has_class, record
from exegete.tasks.settings import PairSource, check_pair


class HubTask(PairSource):
    """A data set of the hub with a column of texts, or two, and one of classes."""

    text: str = "text"  # names of columns
    question: str | None = None  # the second text of a pair
    label: str = "label"
    config: str | None = None  # which part of the data set, where it has several

    def task(self, spec: Spec) -> Task:
        """Load the data set that `hf:NAME` names (`datasets` keeps it for the next time)."""
        name = spec.name.removeprefix("hf:")
        rows, notes = self.read(name)
        return prepare(str(spec), rows, self, f"hf:{name}", notes)

    def read(self, name: str) -> tuple[dict[str, list[SourceRow]], list[str]]:
        """The rows of every split, and what was left out."""
        check_pair(self)
        splits, notes = splits_of(name, self.config)
        return {split: self._rows(data, split, name, notes) for split, data in splits.items()}, notes

    def _rows(self, data: Any, split: str, name: str, notes: list[str]) -> list[SourceRow]:
        """The labelled rows of one split; rows without a class (hidden test sets have none) are counted in a note."""
        rows = list(self._labelled(data, name, split))
        missing = len(data) - len(rows)
        if missing:
            notes.append(f"{missing:,} rows of {split} have no class and were left out.")
        return rows

    def _labelled(self, data: Any, name: str, split: str) -> Iterator[SourceRow]:
        texts = {"text": self.text} | ({"question": self.question} if self.question else {})
        _check_columns(data, name, {**texts, "label": self.label}, texts)
        classes = getattr(data.features[self.label], "names", None)  # a ClassLabel keeps numbers and knows their names
        more = [column for column in ("rationale", "candidates") if self.question and column in data.features]
        for row, fields in enumerate(data.select_columns([*texts.values(), self.label, *more])):
            label = fields[self.label]
            if has_class(label) and label != -1:
                named = {**fields, self.label: classes[label] if classes else label}
                where = f"hf:{name}, row {row + 1} of {split}"
                yield SourceRow(row, record(named, where, self.text, self.label, self.question))


def _check_columns(data: Any, name: str, asked: Mapping[str, str], texts: Mapping[str, str]) -> None:
    for setting, column in asked.items():
        if column not in data.features:
            raise UsageError(f"{unknown(f'column of {name}', column, data.features)} (write {setting}=COLUMN)")
    for setting, column in texts.items():
        if getattr(data.features[column], "dtype", None) not in ("string", "large_string"):
            right = f"name the column of {setting}s with {setting}=COLUMN"
            raise UsageError(f"column '{column}' of {name} is no text: {right}")


def splits_of(name: str, config: str | None) -> tuple[dict[str, Any], list[str]]:
    """Train, dev and test of a data set, or its only split, and a note of what else it has."""
    found = _load(name, config)
    splits = {SPLIT_NAMES[split]: data for split, data in found.items() if split in SPLIT_NAMES}
    others = sorted(split for split in found if split not in SPLIT_NAMES)
    unread = [f"The data set's splits {', '.join(others)} were not read."] if others and len(found) > 1 else []
    return splits or dict(found), unread


def _load(name: str, config: str | None) -> Any:
    """The splits of a data set; everything that can go wrong on the way is one sentence."""
    try:
        import datasets
    except ImportError:
        raise ExegeteError(f"hf:{name} needs the package datasets: {install('hf')}") from None
    try:
        return datasets.load_dataset(name, config)
    except ConnectionError:
        raise ExegeteError(
            f"hf:{name}: the hub can't be reached and the data set is not cached: go online, or use file:PATH"
        ) from None
    except FileNotFoundError:
        raise ExegeteError(f"hf:{name}: there is no such data set on the hub or folder here: check the name") from None
    except (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise ExegeteError(f"hf:{name} can't be loaded: {said:.300}") from None
