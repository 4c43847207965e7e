"""Vector files as text, plain or .gz: `word v1 v2 …` a line (GloVe), perhaps after word2vec's line of two counts."""

import math
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exegete.base.errors import ExegeteError
from exegete.tasks.text_files import open_text


def read_text(path: Path, wanted: Collection[str]) -> tuple[dict[str, NDArray[np.float32]], int]:
    """The rows of the wanted words, and the size of all: the file streams by, so its other rows take no memory."""
    rows: dict[str, NDArray[np.float32]] = {}
    size = 0
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        size = size or _size(line, where)
        word, values = _cut(line, size, where)
        if word in wanted and word not in rows:
            rows[word] = _vector(values, where)
    if not size:
        raise ExegeteError(f"{path} has no vectors: give a line 'word v1 v2 …' for every word")
    return rows, size


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with a word, with their numbers; word2vec's header (number of words, size) is passed over."""
    with open_text(path, newline="\n") as file:
        for number, line in enumerate(file, start=1):
            header = number == 1 and len(line.split()) == 2 and all(part.isdecimal() for part in line.split())
            if line.strip() and not header:
                yield number, line.strip(" \r\n")


def _size(line: str, where: str) -> int:
    size = line.count(" ")
    if not size:
        raise ExegeteError(f"{where}: a word without numbers: write 'word v1 v2 …' with single spaces")
    return size


def _cut(line: str, size: int, where: str) -> tuple[str, list[str]]:
    """Word and numbers. A word may hold spaces (GloVe 840B has '. . .'), but one that ends in a number has too many."""
    word, *values = line.rsplit(" ", size)
    if len(values) < size:
        raise ExegeteError(
            f"{where}: {len(values)} numbers where the first vector has {size}: the file is cut or mixed"
        )
    if " " in word and _is_number(word.rpartition(" ")[2]):
        raise ExegeteError(f"{where}: more numbers than the {size} of the first vector: the file is cut or mixed")
    return word, values


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _vector(values: list[str], where: str) -> NDArray[np.float32]:
    for value in values:
        if not _is_number(value):
            raise ExegeteError(f"{where}: '{value}' is not a number: write 'word v1 v2 …'")
    return np.array([float(value) for value in values], dtype=np.float32)
