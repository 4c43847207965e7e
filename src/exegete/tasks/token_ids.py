"""Token ids: a large split as numbers on disk, by one vocabulary, so that an epoch reads no words and looks none up.

A text is one record: its tokens, the text that each belongs to and its sentence, as 32-bit numbers; an index says where
it is, 20 bytes a text. Records are read by their place, as lines of `stored` are, so that none stays in memory. They
are written once, beside the texts, and named by the vocabulary and the texts; the numbers are those that `collate`
makes of the words.
"""

import os
import weakref
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exegete.base.files import whole_folder
from exegete.base.lease import leased
from exegete.tasks.example import Example
from exegete.tasks.stored import Stored
from exegete.tasks.vocabulary import Vocabulary

Record = tuple[list[int], list[int], list[int]]  # tokens, their text, their sentence
Flatten = Callable[[tuple[tuple[str, ...], ...], Vocabulary], Record]
RECORDS, INDEX = "records.bin", "index.npy"
PLACE = np.dtype([("line", "i8"), ("start", "i8"), ("tokens", "i4")])  # of a text: its line in `stored`, its record


class TokenIds:
    """The records of a split, in a folder."""

    def __init__(self, folder: Path, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._index = np.load(folder / INDEX)  # by line
        self._file = os.open(folder / RECORDS, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def of(self, rows: NDArray[Any]) -> list[Record]:
        """The records of some texts, by their rows in the index of `stored`."""
        places = self._index[np.searchsorted(self._index["line"], rows["offset"])]
        return [self._read(start, tokens) for _, start, tokens in places.tolist()]

    def _read(self, start: int, tokens: int) -> Record:
        found = np.frombuffer(os.pread(self._file, 12 * tokens, start), np.int32).tolist()
        return found[:tokens], found[tokens : 2 * tokens], found[2 * tokens :]


class Numbered(Stored):
    """Stored examples whose token ids are on disk, too."""

    def __init__(self, path: Path, rows: NDArray[Any], explained: int, ids: TokenIds) -> None:
        super().__init__(path, rows, explained)
        self.ids = ids

    def some(self, rows: NDArray[Any]) -> "Numbered":
        """Those of some rows of the index."""
        return Numbered(self.path, rows, self.explained, self.ids)

    def records(self) -> list[Record]:
        """The token ids of all."""
        return self.ids.of(self.rows)


def numbered(examples: Sequence[Example], vocabulary: Vocabulary, flatten: Flatten) -> Sequence[Example]:
    """A stored split with its token ids, written unless they are there; examples in memory as they are."""
    if not isinstance(examples, Stored) or isinstance(examples, Numbered):
        return examples
    name = sha256(vocabulary.fingerprint.encode() + examples.rows["offset"].tobytes()).hexdigest()[:16]
    folder = examples.path.parent / f"tokens-{name}"
    if not (folder / INDEX).is_file():
        with leased(folder.with_name(f".{folder.name}.lock")):
            if not (folder / INDEX).is_file():
                with whole_folder(folder, INDEX) as beside:
                    _write(beside, examples, vocabulary, flatten)
    return Numbered(examples.path, examples.rows, examples.explained, TokenIds(folder, vocabulary))


def _write(folder: Path, examples: Stored, vocabulary: Vocabulary, flatten: Flatten) -> None:
    """Every text, in the order in which they lie on disk."""
    rows = np.sort(examples.rows, order="offset")
    index = np.zeros(len(rows), PLACE)
    index["line"] = rows["offset"]
    with (folder / RECORDS).open("wb") as file:
        for place, example in enumerate(examples.some(rows)):
            record = np.array(flatten(example.texts, vocabulary), np.int32)
            index["start"][place], index["tokens"][place] = file.tell(), record.shape[1]
            file.write(record.tobytes())
    np.save(folder / INDEX, index)
