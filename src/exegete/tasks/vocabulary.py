"""Vocabulary: words to rows of an embedding table, fitted on the training split only."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, ClassVar

from exegete.tasks.example import Example

if TYPE_CHECKING:  # torch is slow to import, and listings know vocabularies
    from torch import Tensor

    from exegete.tasks.reader import Gone

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
ZEROED = -1  # no row: what stands for a word whose embedding is zero


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Rows 0 to 3 are padding, the unknown word, start and end of a text; then the words, in alphabetical order."""

    verbatim: ClassVar[bool] = False  # whether it reads the characters between words, too (`Example.verbatim`)

    words: tuple[str, ...]
    wrap: bool = False  # bracket every text with start and end, as Jain & Wallace do
    index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {word: row for row, word in enumerate((*SPECIAL, *self.words))})

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def rows(self, words: Sequence[str]) -> list[int]:
        """The row of every word; a word that training did not show is the unknown word."""
        return list(map(self.index.get, words, repeat(UNKNOWN)))

    def spelled(self, rows: Iterable[int]) -> tuple[str, ...]:
        """The words that rows stand for."""
        every = (*SPECIAL, *self.words)
        return tuple(every[row] for row in rows)

    def knows(self, word: str) -> bool:
        """Whether training showed this word."""
        return word in self.index

    def cost(self, rows: "Tensor") -> "Tensor":
        """1: every word is one row of a table."""
        return rows.new_ones(rows.shape)

    def costs(self, tokens: "Tensor", part: "Tensor") -> "Tensor":
        """Those of the rows by themselves."""
        del part
        return self.cost(tokens)

    def plain(self, rows: "Tensor") -> "Tensor":
        """Rows are of words alone."""
        return rows

    def without(self, rows: "Tensor", by: "Gone") -> "Tensor":
        """All words look alike once they are zeroed, or made unknown."""
        return rows.new_full(rows.shape, ZEROED if by == "zero" else UNKNOWN)

    @cached_property
    def fingerprint(self) -> str:
        """Of the words and the wrapping: cheap to compare, however many words there are."""
        return hashlib.sha256(repr((self.words, self.wrap)).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def fit_vocabulary(examples: Iterable[Example], min_df: int = 1, wrap: bool = False) -> Vocabulary:
    """All words that occur in at least `min_df` training texts."""
    documents = _documents(examples)
    kept = (word for word, count in documents.items() if count >= min_df and word not in SPECIAL)
    return Vocabulary(tuple(sorted(kept)), wrap)


def _documents(examples: Iterable[Example]) -> Counter[str]:
    """In how many examples a word is; stored ones are counted without reading any."""
    from exegete.tasks.disk import Stored  # numpy, which listings don't need

    if isinstance(examples, Stored):
        return examples.documents()
    documents: Counter[str] = Counter()
    for example in examples:
        documents.update(set(chain.from_iterable(example.texts)))
    return documents
