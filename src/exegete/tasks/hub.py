"""The Hugging Face hub: `hf:owner/name` through `datasets`, or a local folder that it can load."""

from collections.abc import Iterator
from typing import Any

from exegete.base.errors import ExegeteError, UsageError, unknown
from exegete.base.names import Spec
from exegete.tasks.example import Record, Task
from exegete.tasks.files import SPLIT_NAMES
from exegete.tasks.prepare import Row, prepare
from exegete.tasks.settings import Source

INSTALL = 'pip install "exegete[hf]"'


class HubTask(Source):
    """A data set of the hub with a column of texts and one of classes."""

    text: str = "text"  # names of columns
    label: str = "label"
    config: str | None = None  # which part of the data set, where it has several

    def task(self, spec: Spec) -> Task:
        """Load the data set that `hf:NAME` names (`datasets` keeps it for the next time)."""
        name = spec.name.removeprefix("hf:")
        found = _load(name, self.config)
        notes: list[str] = []
        splits = {SPLIT_NAMES[split]: data for split, data in found.items() if split in SPLIT_NAMES}
        others = sorted(split for split in found if split not in SPLIT_NAMES)
        if others and len(found) > 1:
            notes.append(f"The data set's splits {', '.join(others)} were not read.")
        rows = {split: self._rows(data, split, name, notes) for split, data in (splits or dict(found)).items()}
        return prepare(str(spec), rows, self, f"hf:{name}", notes)

    def _rows(self, data: Any, split: str, name: str, notes: list[str]) -> list[Row]:
        """The labelled rows of one split; rows without a class (hidden test sets have none) are counted in a note."""
        rows = list(self._labelled(data, name))
        missing = len(data) - len(rows)
        if missing:
            notes.append(f"{missing:,} rows of {split} have no class and were left out.")
        return rows

    def _labelled(self, data: Any, name: str) -> Iterator[Row]:
        _check_columns(data, name, {"text": self.text, "label": self.label})
        classes = getattr(data.features[self.label], "names", None)  # a ClassLabel keeps numbers and knows their names
        for row, fields in enumerate(data.select_columns([self.text, self.label])):
            label = fields[self.label]
            if label is not None and label != -1:
                yield Row(row, Record((fields[self.text] or "",), classes[label] if classes else str(label)))


def _check_columns(data: Any, name: str, asked: dict[str, str]) -> None:
    for setting, column in asked.items():
        if column not in data.features:
            raise UsageError(f"{unknown(f'column of {name}', column, data.features)} (write {setting}=COLUMN)")
    feature = data.features[asked["text"]]
    if getattr(feature, "dtype", None) not in ("string", "large_string"):
        raise UsageError(f"column '{asked['text']}' of {name} is no text: name the column of texts with text=COLUMN")


def _load(name: str, config: str | None) -> Any:
    """The splits of a data set; everything that can go wrong on the way is one sentence."""
    try:
        import datasets
    except ImportError:
        raise ExegeteError(f"hf:{name} needs the package datasets: {INSTALL}") from None
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
