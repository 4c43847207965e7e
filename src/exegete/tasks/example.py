"""Examples and tasks: labelled texts with splits, perhaps gold rationales."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from exegete.base.errors import ExegeteError, unknown

if TYPE_CHECKING:  # numpy takes a moment to import, and listings know tasks
    from exegete.tasks.data_check import DataCheck

Kind = Literal["classification", "pair", "translation"]
MARK = "\x1f"  # before a word that is written with the characters before it


class Record(NamedTuple):
    """One example as a source gives it, before tokenising."""

    texts: tuple[str, ...]
    label: str
    rationale: tuple[
        tuple[int, int], ...
    ] = ()  # [start, end) over the white-space words of all texts, one after the other
    candidates: tuple[str, ...] = ()  # the classes that may be chosen here; all, unless given


class Link(NamedTuple):
    """A word of the source and a word of the target that translate each other, counted from 0 in white-space words."""

    source: int
    target: int
    sure: bool = True  # else only possible


Links = tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One example as models see it."""

    id: int  # its row in its source; keys all noise, so a draw doesn't depend on filters, order or batches
    texts: tuple[tuple[str, ...], ...]  # the words of every text
    label: int
    rationale: tuple[int, ...] = ()  # indices of the words that people marked, among `words`
    candidates: tuple[int, ...] = ()  # the classes that may be chosen here; all, unless given
    explained: int = 0  # which text is explained: attention and importances are about its words
    written: tuple[tuple[str, ...], ...] = ()  # each word with the characters before it, and after the last word those
    # after it, as people wrote them; none where all words stand one space apart

    @property
    def verbatim(self) -> tuple[tuple[str, ...], ...]:
        """The words of every text; one that has other characters before it than a space is written with these.

        Such a word begins with `MARK`, which no word has, as it is white space.
        """
        if not self.written:
            return self.texts
        return tuple(
            tuple(
                word if written == (f" {word}" if place else word) else MARK + written
                for place, (word, written) in enumerate(zip(*text, strict=True))
            )
            for text in zip(self.texts, self.written, strict=True)
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the explained text: of a pair the passage or premise, of a translation the source."""
        return self.texts[self.explained]

    @property
    def all_words(self) -> tuple[str, ...]:
        """The words of all texts, one after the other."""
        return tuple(word for text in self.texts for word in text)

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class Task:
    """Labelled examples with splits, and where they come from."""

    name: str  # as asked for, settings included
    labels: tuple[str, ...]  # none for translation
    splits: Mapping[str, Sequence[Example]]  # in memory, or on disk where they are many
    origin: str  # which file, package or hub
    notes: tuple[str, ...] = ()  # what was left out or differs, in sentences
    min_df: int = 1  # words in fewer training texts are unknown words
    lower: bool = False
    tokenizer: str = "whitespace"
    kind: Kind = "classification"
    step: str = ""  # of a translation: which output words are explained, see `next_words`
    pieces: str = ""  # of a translation: what cuts words into pieces, as JSON; none where words stay whole
    alignments: Mapping[str, Mapping[int, Links]] = field(default_factory=dict)  # by split and example id, where known
    written: tuple[str, ...] = ()  # the labels as the source writes them, where that may differ
    labelled: bool = True  # else nobody said of what class the texts are: a finished model can be asked about them
    check: "DataCheck | None" = None  # what was counted in it before anything was trained; none of a translation

    def split(self, name: str) -> Sequence[Example]:
        """The examples of one split."""
        if name not in self.splits:
            raise unknown(f"split of task '{self.name}'", name, self.splits)
        return self.splits[name]

    def gold(self, example: Example) -> str | None:
        """The name of an example's right class, where it is known."""
        return self.labels[example.label] if self.labelled else None

    @cached_property
    def hash(self) -> str:
        """A fingerprint of everything that models see: words, labels, rationales, splits.

        Labels as the source writes them: to call a class by its name makes no other data.
        """
        digest = hashlib.sha256(repr((self.written or self.labels, self.min_df)).encode())
        for name in sorted(self.splits):
            digest.update(name.encode())
            for e in self.splits[name]:
                more = (e.candidates, e.explained) if e.candidates or e.explained else ()
                more = (*more, e.written) if e.written else more
                digest.update(repr((e.id, e.texts, e.label, e.rationale, *more)).encode())
        for name in sorted(self.alignments):
            digest.update(repr((name, sorted(self.alignments[name].items()))).encode())
        return digest.hexdigest()[:16]

    @property
    def mean_length(self) -> float:
        """Mean number of words of the test texts (Neely & Schouten's k = "avg")."""
        lengths = [len(e) for e in self.split("test")]
        return sum(lengths) / len(lengths)


def check_labels(train: Sequence[Example], splits: Mapping[str, Sequence[Example]], labels: Sequence[str]) -> None:
    """A class that training never shows can't be learnt: refuse it by name.

    Where examples have their own candidates, the right one may be new: an entity that only the test texts name.
    """
    seen = {e.label for e in train}
    for name, examples in splits.items():
        for e in examples:
            if e.label not in seen and not e.candidates:
                raise unlearnt(labels[e.label], name)


def unlearnt(label: str, split: str) -> ExegeteError:
    """What is wrong with a class that training never shows."""
    return ExegeteError(
        f"class '{label}' occurs in {split} but not in train: give the training split examples of it, or drop them"
    )
