"""Whole files only: what is written appears complete under its name, or not at all."""

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exegete.base.errors import DiskError, ExegeteError


@contextmanager
def plain_disk_errors(path: Path) -> Iterator[None]:
    """Turn what a disk can say into one sentence."""
    try:
        yield
    except Exception as error:
        said = _sentence(error, path)
        if said is None:
            raise
        raise DiskError(said) from error


def _sentence(error: Exception, path: Path) -> str | None:
    """A sentence for what a disk said, also where a library wraps it in an error of its own; None for all else."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or re.search(r"os error (28|122)\b|No space left", str(error)):
        return f"no space left for {path}: free some and run the same command again; nothing earlier is lost"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"may not write {path}: choose another place"
    if number in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.EBUSY):
        return f"can't write {path}: there is something else under that name; choose another"
    return None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`: what is written there becomes `path` at the end, or vanishes after an error."""
    with plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except FileNotFoundError:  # a folder that takes no files, as /proc
            raise ExegeteError(f"can't write {path}: no file can be made there; choose another place") from None
        os.close(handle)
        beside = Path(name)
        try:
            yield beside
            beside.chmod(0o644)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path, known: str = "") -> Iterator[Path]:
    """A temporary folder that becomes `path` at the end; another's of meanwhile stays, if it has a file `known`.

    Whoever passes `known` names folders by content: both wrote the same.
    """
    with plain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            yield beside
            beside.chmod(0o755)
            try:
                beside.rename(path)
            except OSError:
                if not known or not (path / known).is_file():
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole."""
    with whole_file(path) as beside:
        beside.write_text(text, encoding="utf8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON, whole; numbers that JSON lacks are refused, not written as NaN."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Read JSON; a missing or broken file is one sentence about `what`."""
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ExegeteError(f"there is no {what} at {path.parent}: {path.name} is missing") from None
    except (ValueError, OSError) as error:
        raise ExegeteError(f"{path} can't be read as a {what} ({error}): remove it and make it again") from None


def is_file(path: Path) -> bool:
    """Whether a file is there; a name that is longer than a file's may be, such as a model's with its prompt, is none.

    >>> is_file(Path("x" * 1000))
    False
    """
    try:
        return path.is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False
