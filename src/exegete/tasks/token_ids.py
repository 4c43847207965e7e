"""Token ids: a large split as rows of one vocabulary, so that an epoch reads no words and looks none up.

They are the numbers of the words on disk, by a table of the vocabulary's rows. The lists are those that `collate` makes
of the words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from exegete.tasks.disk import Stored
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import END, START, Vocabulary
from exegete.tasks.word_numbers import WordNumbers

IdRecord = tuple[list[int], list[int], list[int]]  # tokens, their text, their sentence


class TokenIds:
    """The texts in a folder as a vocabulary reads them."""

    def __init__(self, folder: Path, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._numbers = WordNumbers(folder)
        self._rows = self._numbers.rows(vocabulary)

    def of(self, rows: NDArray[Any], explained: int) -> list[IdRecord]:
        """The records of some texts, by their rows in the index of `stored`."""
        places = rows[["numbers", "length", "all_words"]].tolist()
        return [self._record(start, _lengths(length, words, explained)) for start, length, words in places]

    def _record(self, start: int, lengths: Sequence[int]) -> IdRecord:
        words = sum(lengths)
        tokens = self._rows[self._numbers.numbers(start, words)].tolist()
        sentence = self._numbers.sentences(start, words).tolist()
        if self.vocabulary.wrap:
            tokens, sentence = _wrapped(tokens, lengths, START, END), _wrapped(sentence, lengths, -1, -1)
        part = [text for text, length in enumerate(lengths) for _ in range(length + 2 * self.vocabulary.wrap)]
        return tokens, part, sentence


def _lengths(explained_words: int, all_words: int, explained: int) -> tuple[int, ...]:
    """The words of each text: there is one, or two of which none is empty."""
    if explained_words == all_words:
        return (all_words,)
    other = all_words - explained_words
    return (other, explained_words) if explained else (explained_words, other)


def _wrapped(values: Sequence[int], lengths: Sequence[int], before: int, after: int) -> list[int]:
    """The values of every text between two others."""
    found: list[int] = []
    start = 0
    for length in lengths:
        found += [before, *values[start : start + length], after]
        start += length
    return found


class Numbered(Stored):
    """Stored examples that are read as token ids, too."""

    def __init__(self, path: Path, rows: NDArray[Any], explained: int, ids: TokenIds) -> None:
        super().__init__(path, rows, explained)
        self.ids = ids

    def some(self, rows: NDArray[Any]) -> "Numbered":
        """Those of some rows of the index."""
        return Numbered(self.path, rows, self.explained, self.ids)

    def records(self) -> list[IdRecord]:
        """The token ids of all."""
        return self.ids.of(self.rows, self.explained)


def number_split(examples: Sequence[Example], vocabulary: Vocabulary) -> Sequence[Example]:
    """A stored split with its token ids; examples in memory as they are."""
    if not isinstance(examples, Stored) or isinstance(examples, Numbered):
        return examples
    return Numbered(examples.path, examples.rows, examples.explained, TokenIds(examples.path.parent, vocabulary))
