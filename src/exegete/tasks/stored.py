"""Stored: the examples of a large task on disk and an index of them in memory; a text is read when it is asked for.

An example is one line of a file: its texts and the words that people marked. The index says where each line is, and
what choosing, sorting and batching need (id, lengths, class), 33 bytes an example. Lines are read by their place, not
mapped: what was read once does not stay.
"""

import json
import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from sys import intern
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from exegete.tasks.example import Example

INDEX = np.dtype(
    [
        ("offset", "i8"),
        ("size", "i4"),
        ("id", "i8"),
        ("length", "i4"),  # words of the text that is explained
        ("label", "i4"),
        ("marked", "?"),
        ("all_words", "i4"),  # of all its texts
    ]
)
Places = NDArray[np.int64]


def line_of(texts: Sequence[Sequence[str]], rationale: Sequence[int], written: Sequence[Sequence[str]] = ()) -> bytes:
    """What is kept of an example, but for what its index says."""
    parts = [texts, rationale, written] if written else [texts, rationale]
    return json.dumps(parts, separators=(",", ":")).encode() + b"\n"


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

    def __iter__(self) -> Iterator[Example]:
        return (self._read(row.item()) for row in self.rows)

    def _read(self, row: tuple[int, int, int, int, int, bool, int]) -> Example:
        offset, size, id_, _, label, *_ = row
        texts, rationale, *more = json.loads(os.pread(self._file, size, offset))
        words = tuple(tuple(map(intern, text)) for text in texts)  # a word of many texts is there once
        written = tuple(map(tuple, more[0])) if more else ()
        return Example(id_, words, label, tuple(rationale), (), self.explained, written)

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.path, self.rows, self.explained)


def ids_of(examples: Sequence[Example]) -> Places:
    """The ids of examples; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return np.array(examples.rows["id"], np.int64)
    return np.fromiter((e.id for e in examples), np.int64, len(examples))


def lengths_of(examples: Sequence[Example]) -> Places:
    """How many words each has; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return np.array(examples.rows["length"], np.int64)
    return np.fromiter(map(len, examples), np.int64, len(examples))


def sizes_of(examples: Sequence[Example]) -> list[tuple[int, int]]:
    """Words of the explained text, and of all texts, of each; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return list(zip(examples.rows["length"].tolist(), examples.rows["all_words"].tolist(), strict=True))
    return [(len(e), sum(map(len, e.texts))) for e in examples]


def labels_of(examples: Sequence[Example]) -> Places:
    """The classes of examples; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return np.array(examples.rows["label"], np.int64)
    return np.fromiter((e.label for e in examples), np.int64, len(examples))


def any_marked(examples: Sequence[Example]) -> bool:
    """Whether people marked words of any; of stored ones without reading any."""
    if isinstance(examples, Stored):
        return bool(examples.rows["marked"].any())
    return any(e.rationale for e in examples)


def some_of(examples: Sequence[Example], places: Places) -> Sequence[Example]:
    """Some examples, in the order of their places; stored ones stay where they are."""
    if isinstance(examples, Stored):
        return examples.some(examples.rows[places])
    return tuple(examples[i] for i in places.tolist())
