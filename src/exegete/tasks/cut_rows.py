"""Cut rows: some rows of a large file at a time as all that is written of them, on any core.

Words are numbered within the rows, so that what has to be known of a word is found once for all its copies. Who writes
gives the words their numbers in the file, and the rows their places.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exegete.tasks.disk import encode_line
from exegete.tasks.prepare import NamedExample, SourceRow, draft_of, explained_marks
from exegete.tasks.sentences import sentence_lengths, word_kind
from exegete.tasks.settings import TaskSettings

RowGroup = list[tuple[str, SourceRow]]  # rows with their splits
GROUP = 2_000_000  # characters of text in a group, about
ROWS = np.dtype(
    [
        ("offset", "i8"),
        ("size", "i8"),
        ("id", "i8"),
        ("length", "i8"),
        ("label", "i8"),
        ("marked", "i8"),
        ("all_words", "i8"),
        ("numbers", "i8"),
        ("longest", "i8"),
        ("place", "f8"),
        ("seen", "i8"),  # of what is hashed
        ("seen_size", "i8"),
    ]
)


class CutRow(NamedTuple):
    """Rows cut into words; those with an empty text are only counted."""

    lengths: list[list[int]]  # words of every text, of all rows
    rows: NDArray[Any]  # of those without an empty text, with places counted from 0
    splits: list[str]
    split: NDArray[np.int64]  # of each row, its place among these
    classes: list[str]  # in order of appearance; a row's label is a place among them
    lines: bytes
    seen: bytes
    words: list[str]  # in order of appearance
    numbers: NDArray[np.int32]  # of all words of all rows, one after the other: places among these
    sentences: NDArray[np.int32]


def groups(rows: Iterable[tuple[str, SourceRow]]) -> Iterator[RowGroup]:
    """Rows, some at a time; before an error, those that came before it."""
    group: RowGroup = []
    size = 0
    try:
        for row in rows:
            group.append(row)
            size += sum(map(len, row[1].record.texts))
            if size >= GROUP or len(group) >= GROUP // 100:
                yield group
                group, size = [], 0
    except Exception:
        yield group
        raise
    yield group


def cut_rows(settings: TaskSettings, group: RowGroup) -> CutRow:
    """Rows as they are written."""
    drafts = [draft_of(split, row, settings) for split, row in group]
    whole = [(split, draft) for (split, _), draft in zip(group, drafts, strict=True) if all(draft.texts)]
    splits, classes, words = _places(), _places(), _places()
    numbers = [[list(map(words.__getitem__, text)) for text in draft.texts] for _, draft in whole]
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(numbers)), np.int32)
    shown = list(map(repr, words))
    rows, lines, seen = np.zeros(len(whole), ROWS), [], []
    for row, (_, draft), texts in zip(rows, whole, numbers, strict=True):
        marked = explained_marks(draft, settings.explained)
        lines.append(encode_line(draft.texts, marked, draft.written))
        seen.append(_seen(draft, marked, texts, shown))
        lengths = list(map(len, texts))
        row["id"], row["label"], row["place"] = draft.id, classes[draft.label], draft.place
        row["length"], row["all_words"], row["longest"] = lengths[settings.explained], sum(lengths), max(lengths)
        row["marked"], row["size"], row["seen_size"] = bool(marked), len(lines[-1]), len(seen[-1])
    for start, size in (("offset", "size"), ("seen", "seen_size"), ("numbers", "all_words")):
        rows[start] = rows[size].cumsum() - rows[size]
    kinds = np.frombuffer("".join(map(word_kind, words)).encode("ascii"), np.uint8)
    return CutRow(
        lengths=[list(map(len, draft.texts)) for draft in drafts],
        rows=rows,
        split=np.array([splits[split] for split, _ in whole], np.int64),
        splits=list(splits),
        classes=list(classes),
        lines=b"".join(lines),
        seen=b"".join(seen),
        words=list(words),
        numbers=flat,
        sentences=_sentences([list(map(len, draft.texts)) for _, draft in whole], kinds[flat].tobytes().decode()),
    )


def _places() -> defaultdict[str, int]:
    """Gives whatever it is asked for its place among what it was asked for."""
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__
    return places


def _sentences(texts: Sequence[Sequence[int]], kinds: str) -> NDArray[np.int32]:
    """The sentence of every word, of texts with so many words: none goes on in another text of its example."""
    sizes: list[int] = []  # words of every sentence
    numbers: list[int] = []
    start = 0
    for lengths in texts:
        before = len(sizes)
        for length in lengths:
            sizes += sentence_lengths(kinds[start : start + length])
            start += length
        numbers += range(len(sizes) - before)
    return np.repeat(np.array(numbers, np.int32), sizes)


def _seen(draft: NamedExample, marked: Sequence[int], texts: Sequence[Sequence[int]], shown: Sequence[str]) -> bytes:
    """What `Task.hash` sees of an example, but for its id and class; words as `repr` shows them."""
    words = _tuple([_tuple(list(map(shown.__getitem__, text))) for text in texts])
    characters = f", {draft.written!r}" if draft.written else ""
    return f"{words}\t{marked!r}\t{characters}".encode()


def _tuple(shown: Sequence[str]) -> str:
    """A tuple as `repr` shows it, of what it shows of its items.

    >>> _tuple(["'a'"]), _tuple(["'a'", "1"])
    ("('a',)", "('a', 1)")
    """
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
