"""Examples and tasks: labelled texts with splits, perhaps gold rationales."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from exegete.base.errors import ExegeteError, unknown

Kind = Literal["classification", "pair", "translation"]


class Record(NamedTuple):
    """One example as a source gives it, before tokenising."""

    texts: tuple[str, ...]
    label: str
    rationale: tuple[
        tuple[int, int], ...
    ] = ()  # [start, end) over the white-space words of all texts, one after the other


@dataclass(frozen=True, slots=True)
class Example:
    """One example as models see it."""

    id: int  # its row in its source; keys all noise, so a draw doesn't depend on filters, order or batches
    texts: tuple[tuple[str, ...], ...]  # the words of every text
    label: int
    rationale: tuple[int, ...] = ()  # indices of the words that people marked, over all texts one after the other

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all texts, one after the other."""
        return tuple(word for text in self.texts for word in text)

    def __len__(self) -> int:
        return sum(map(len, self.texts))


@dataclass(frozen=True)
class Task:
    """Labelled examples with splits, and where they come from."""

    name: str  # as asked for, settings included
    labels: tuple[str, ...]
    splits: Mapping[str, tuple[Example, ...]]
    origin: str  # which file, package or hub
    notes: tuple[str, ...] = ()  # what was left out or differs, in sentences
    min_df: int = 1  # words in fewer training texts are unknown words
    lower: bool = False
    tokenizer: str = "whitespace"
    kind: Kind = "classification"

    def split(self, name: str) -> tuple[Example, ...]:
        """The examples of one split."""
        if name not in self.splits:
            raise unknown(f"split of task '{self.name}'", name, self.splits)
        return self.splits[name]

    @cached_property
    def hash(self) -> str:
        """A fingerprint of everything that models see: words, labels, rationales, splits."""
        digest = hashlib.sha256(repr((self.labels, self.min_df)).encode())
        for name in sorted(self.splits):
            digest.update(name.encode())
            for e in self.splits[name]:
                digest.update(repr((e.id, e.texts, e.label, e.rationale)).encode())
        return digest.hexdigest()[:16]

    @property
    def mean_length(self) -> float:
        """Mean number of words of the test texts (Neely & Schouten's k = "avg")."""
        lengths = [len(e) for e in self.split("test")]
        return sum(lengths) / len(lengths)


def check_labels(train: Sequence[Example], splits: Mapping[str, Sequence[Example]], labels: Sequence[str]) -> None:
    """A class that training never shows can't be learnt: refuse it by name."""
    seen = {e.label for e in train}
    for name, examples in splits.items():
        for e in examples:
            if e.label not in seen:
                raise ExegeteError(
                    f"class '{labels[e.label]}' occurs in {name} but not in train: give the training split examples of "
                    "it, or drop them"
                )
