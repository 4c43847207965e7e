"""Text files: plain or gzipped, line by line, with errors that name the file and the line."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO

from exegete.base.errors import ExegeteError


def is_gzip(path: Path) -> bool:
    """Whether a file's name says that it is compressed."""
    return path.suffix == ".gz"


@contextmanager
def open_text(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """A UTF-8 text file (or UTF-16, where a mark at its beginning says so), plain or gzipped.

    What can't be read is one sentence.
    """
    try:
        with _opened(path, newline) as file:
            yield file
    except FileNotFoundError:
        raise ExegeteError(f"no such file: {path}: check the path") from None
    except UnicodeDecodeError as error:
        raise ExegeteError(
            f"{path}, line {_bad_line(path)}: not UTF-8 text ({error.reason}): save it as UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ExegeteError(f"{path} is not a whole gzip file ({error}): get it again") from None
    except OSError as error:
        raise ExegeteError(f"{path} can't be read: {error.strerror or error}") from None


def _bad_line(path: Path) -> int:
    """The first line that is not UTF-8; of a damaged gzip file, the last that can be unpacked."""
    number = 0
    try:
        with _bytes(path) as file:
            for line in file:
                number += 1
                line.decode("utf-8")
    except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile):
        return max(1, number)
    return 1


def _opened(path: Path, newline: str | None) -> TextIO:
    """UTF-8, with or without a byte order mark, or what the mark says."""
    with _bytes(path) as file:
        start = file.read(4)
    encoding = "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    if encoding == "utf-8-sig" and b"\0" in start:
        raise ExegeteError(f"{path} is UTF-16 text without a mark that says so, or no text: save it as UTF-8")
    if is_gzip(path):
        return gzip.open(path, "rt", encoding=encoding, newline=newline)
    return path.open(encoding=encoding, newline=newline)


def _bytes(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object a line, with their line numbers; blank lines are passed over."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                yield number, _object(line, f"{path}, line {number}")


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ExegeteError(f"{where}: not JSON ({error.msg}): write one object a line") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or brackets in thousands of brackets
        raise ExegeteError(f"{where}: a number is too long, or lists too deep, to be read: drop the line") from None
    if not isinstance(value, dict):
        raise ExegeteError(f"{where}: not a JSON object: write one object a line")
    return value
