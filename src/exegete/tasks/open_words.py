"""Open words: a vocabulary that has a row for any word, for models that spell words by pieces.

The words of training have the rows of a vocabulary. Any other word has a row far above, by a hash of its letters: the
same one in every process, so that noise that is keyed by rows is the same, too. Of two words with one hash the second
gets the next free row; such rows label words inside one process, and are never stored.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from exegete.tasks.vocabulary import SPECIAL, Vocabulary

FIRST, ROWS = 1 << 24, (1 << 31) - (1 << 24)  # of unseen words: above any vocabulary, and within 32 bits
_row: dict[str, int] = {}  # for all readers of this process, so that readers that are equal spell alike
_word: dict[int, str] = {}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class OpenWords(Vocabulary):
    """No word is unknown: what training did not show is still spelled."""

    def rows(self, words: Sequence[str]) -> list[int]:
        """The row of every word, seen or not."""
        return [self.index[word] if word in self.index else unseen(word) for word in words]

    def spelled(self, rows: Iterable[int]) -> tuple[str, ...]:
        """The words that rows stand for."""
        return tuple(map(self._word, rows))

    def _word(self, row: int) -> str:
        if row >= FIRST:
            return word_of(row)
        return SPECIAL[row] if row < len(SPECIAL) else self.words[row - len(SPECIAL)]


def unseen(word: str) -> int:
    """The row of a word that no vocabulary has."""
    with _one_at_a_time:
        if word not in _row:
            row = int.from_bytes(blake2b(word.encode("utf8", "surrogatepass"), digest_size=8).digest()) % ROWS
            while FIRST + row in _word:
                row = (row + 1) % ROWS
            _row[word], _word[FIRST + row] = FIRST + row, word
        return _row[word]


def word_of(row: int) -> str:
    """The word that has a row by `unseen`."""
    return _word[row]
