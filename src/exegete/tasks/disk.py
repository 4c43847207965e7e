"""Disk: the examples of a large task on disk and an index of them in memory; a text is read when it is asked for.

An example is one line of a file: the words of its texts, and the places of those that people marked. The index says
where each line is, and what choosing, sorting and batching need (id, lengths, class), 41 bytes an example. Lines are
read by their place, not mapped: what was read once does not stay.
"""

import json
import os
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from sys import intern
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from exegete.tasks.example import MARK, Example
from exegete.tasks.word_numbers import WordNumbers

INDEX = np.dtype(
    [
        ("offset", "i8"),
        ("size", "i4"),
        ("id", "i8"),
        ("length", "i4"),  # words of the text that is explained
        ("label", "i4"),
        ("marked", "?"),
        ("all_words", "i4"),  # of all its texts
        ("numbers", "i8"),  # where those of its words begin, see `word_numbers`
    ]
)
CHUNK = 1024
Places = NDArray[np.int64]


def encode_line(
    texts: Sequence[Sequence[str]], rationale: Sequence[int], written: Sequence[Sequence[str]] = ()
) -> bytes:
    """What is kept of an example, but for what its index says; no word has white space."""
    line = "\t".join([" ".join(map(str, rationale)), *map(" ".join, texts)])
    return (f"{line}{MARK}{json.dumps(written)}\n" if written else f"{line}\n").encode()


class Stored(Sequence[Example]):
    """Examples of one split, read one by one."""

    def __init__(self, path: Path, rows: NDArray[Any], explained: int = 0) -> None:
        self.path, self.rows, self.explained = path, rows, explained
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Example: ...
    @overload
    def __getitem__(self, at: slice) -> "Stored": ...
    def __getitem__(self, at: int | slice) -> "Example | Stored":
        if isinstance(at, slice):
            return self.some(self.rows[at])
        return self._read(self.rows[at].item())

    def some(self, rows: NDArray[Any]) -> "Stored":
        """Those of some rows of the index."""
        return Stored(self.path, rows, self.explained)

    def documents(self) -> Counter[str]:
        """In how many a word is; none is read."""
        return WordNumbers(self.path.parent).documents(self.rows)

    def __iter__(self) -> Iterator[Example]:
        return map(self._read, self._places())

    def _places(self) -> Iterator[tuple[int, int, int, int, int, bool, int, int]]:
        """The rows of the index, some at a time: to read one by one takes longer, and all take memory."""
        for start in range(0, len(self.rows), CHUNK):
            yield from self.rows[start : start + CHUNK].tolist()

    def _read(self, row: tuple[int, int, int, int, int, bool, int, int]) -> Example:
        offset, size, id_, _, label, *_ = row
        line, _, written = os.pread(self._file, size - 1, offset).decode().partition(MARK)
        marked, *texts = line.split("\t")
        words = tuple(tuple(map(intern, text.split(" "))) for text in texts)  # a word of many texts is there once
        characters = tuple(map(tuple, json.loads(written))) if written else ()
        return Example(id_, words, label, tuple(map(int, marked.split())), (), self.explained, characters)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.path, self.rows, self.explained)


def index_of(examples: Sequence[Example]) -> NDArray[Any]:
    """What is known of each without its words: id, lengths, class, marks; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return examples.rows
    rows = [(e.id, len(e), e.label, bool(e.rationale), sum(map(len, e.texts))) for e in examples]
    return np.array(rows, [(name, INDEX[name]) for name in ("id", "length", "label", "marked", "all_words")])


def column_of(examples: Sequence[Example], name: str) -> Places:
    """One column of the index, as whole numbers."""
    return np.array(index_of(examples)[name], np.int64)


def some_of(examples: Sequence[Example], places: Places) -> Sequence[Example]:
    """Some examples, in the order of their places; stored ones stay where they are."""
    if isinstance(examples, Stored):
        return examples.some(examples.rows[places])
    return tuple(examples[i] for i in places.tolist())
