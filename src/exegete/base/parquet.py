"""Parquet: tables on disk, written whole and hashed on the way; one that can't be read is one sentence."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import polars as pl

from exegete.base.errors import ExegeteError
from exegete.base.files import whole_file

_known: dict[Path, tuple[int, int, str]] = {}  # of what this process wrote: size, time and checksum


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """Write a table, whole; its checksum is known without reading it again."""
    written = BytesIO()
    frame.write_parquet(written)
    with whole_file(path) as beside:
        beside.write_bytes(written.getbuffer())
    facts = path.stat()
    _known[path] = facts.st_size, facts.st_mtime_ns, hashlib.sha256(written.getbuffer()).hexdigest()


def checksum(path: Path) -> str:
    """What is in a file, as SHA-256; of what this process wrote, and nobody since, as it was written."""
    size, time, known = _known.pop(path, (-1, -1, ""))
    facts = path.stat()
    if (facts.st_size, facts.st_mtime_ns) == (size, time):
        return known
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_parquet(path: Path | Sequence[Path], columns: list[str] | None = None) -> pl.DataFrame:
    """Read a table, or several below each other; brackets and stars in a name are letters."""
    paths = [path] if isinstance(path, Path) else list(path)
    frames = []
    for each in paths:
        with plain_table_errors(each):
            frames.append(pl.read_parquet(each, columns=columns, glob=False))
    return frames[0] if len(frames) == 1 else pl.concat(frames)


@contextmanager
def plain_table_errors(path: Path) -> Iterator[None]:
    """Turn what a reader says of a damaged table into one sentence; a panic of it is no `Exception`."""
    try:
        yield
    except BaseException as error:
        panics, missing = type(error).__name__ == "PanicException", pl.exceptions.ColumnNotFoundError
        damage = panics or isinstance(error, pl.exceptions.PolarsError | OSError)
        if not damage or isinstance(error, missing):  # a column that is missing was never written
            raise
        why = "it is gone" if isinstance(error, FileNotFoundError) else (str(error).splitlines() or ["damaged"])[0]
        raise ExegeteError(
            f"{path} can't be read ({why[:120]}): `exegete check RUN --repair` computes what is damaged again"
        ) from None
