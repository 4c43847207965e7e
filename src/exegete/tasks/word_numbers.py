"""Word numbers: the texts of a large file as numbers of words, beside the texts, so that nobody looks words up again.

A word has the number of the line that it is on in a list of words, 4 bytes for every word of a text; the sentence that
it is in takes 4 more. Any vocabulary is then a table from numbers to its rows, and texts are counted without reading
them. The list is in order of appearance. Where words are very many, it begins anew, and a word may be there more than
once: so who writes it never holds more than KEPT words. All words of one text are from one such part.
"""

import os
import weakref
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exegete.base.progress import tell
from exegete.tasks.vocabulary import UNKNOWN, Vocabulary

WORDS, NUMBERS, SENTENCES = "words.txt", "numbers.bin", "sentences.bin"
KEPT = 1 << 19  # words whose numbers are known to whoever writes them
CHUNK = 4096  # texts that are counted together
Numbers = NDArray[np.int32]


class WordNumbers:
    """The numbers of the texts in a folder, by the rows of an index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers, self._sentences = (os.open(folder / name, os.O_RDONLY) for name in (NUMBERS, SENTENCES))
        for file in (self._numbers, self._sentences):
            weakref.finalize(self, os.close, file)

    def words(self) -> Iterator[str]:
        """Every word, in the order of the numbers."""
        with (self.folder / WORDS).open(encoding="utf8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def numbers(self, start: int, words: int) -> Numbers:
        """The words of one text, or of the texts of a pair, one after the other."""
        return _read(self._numbers, start, words)

    def sentences(self, start: int, words: int) -> Numbers:
        """The sentence of each."""
        return _read(self._sentences, start, words)

    def rows(self, vocabulary: Vocabulary) -> Numbers:
        """The row of every word, by its number."""
        return np.fromiter(map(vocabulary.index.get, self.words(), repeat(UNKNOWN)), np.int32)

    def documents(self, rows: NDArray[Any]) -> Counter[str]:
        """In how many of some texts a word is."""
        counts = np.zeros(sum(1 for _ in self.words()), np.int64)
        size = max(1, min(CHUNK, 2**31 // max(1, len(counts))))  # pairs of a text and a word have 32 bits
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            found = [self.numbers(*place) for place in some[["numbers", "all_words"]].tolist()]
            text = np.repeat(np.arange(len(some), dtype=np.int32), some["all_words"])
            both = np.sort(text * np.int32(len(counts)) + np.concatenate(found))
            first = both[np.diff(both, prepend=np.int32(-1)) > 0]  # of the copies of a word in a text
            np.add.at(counts, first % np.int32(len(counts)), 1)
            tell("vocabulary, texts", start + len(some), len(rows))
        documents: Counter[str] = Counter()
        for word, count in zip(self.words(), counts.tolist(), strict=True):
            if count:
                documents[word] += count
        return documents


def _read(file: int, start: int, words: int) -> Numbers:
    return np.frombuffer(os.pread(file, 4 * words, 4 * start), np.int32)
