"""Tables: the columns and rows of csv, tsv, jsonl and parquet files, each row with its place, for errors."""

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exegete.base.errors import ExegeteError, UsageError
from exegete.tasks.text_files import is_gzip, open_text, read_jsonl


class PlacedRow(NamedTuple):
    """A row's values by column, and where it is, for errors: `reviews.csv, line 7`."""

    where: str
    fields: dict[str, Any]


class Format(NamedTuple):
    """How one kind of file is read."""

    columns: Callable[[Path], list[str]]
    rows: Callable[[Path, Sequence[str]], Iterator[PlacedRow]]  # of the wanted columns, perhaps of others too
    header: bool = False  # whether its first line names the columns


def format_of(path: Path) -> Format:
    """The format that a file's name tells."""
    suffix = "".join(path.suffixes[-2:]) if is_gzip(path) else path.suffix
    if suffix not in FORMATS:
        raise UsageError(f"'{path.name}' is no kind of file that can be read: choose from {', '.join(FORMATS)}")
    return FORMATS[suffix]


PLAIN = (".txt",)  # a text per line, and no labels
DELIMITERS = (",", ";", "\t")  # a semicolon where a comma is a decimal point, a tab where a sheet was copied


def _delimiter(path: Path) -> str:
    """What separates the columns of a csv file: the first of these marks that cuts its header."""
    with open_text(path, newline="") as file:
        header = next((line for line in file if line.strip()), "")
    return next((mark for mark in DELIMITERS if len(next(csv.reader([header], delimiter=mark))) > 1), DELIMITERS[0])


def _separated(path: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv file, header included, with the line on which each begins; blank lines are passed over."""
    mark = delimiter or _delimiter(path)
    with open_text(path, newline="") as file:
        reader = csv.reader(file, delimiter=mark, strict=True)
        line = 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise ExegeteError(
                f"{path}, line {line}: {error}: write a quote inside quotes twice, and close every quote "
                "(texts of more than 131,072 characters: use jsonl or parquet)"
            ) from None


def _separated_columns(path: Path, delimiter: str | None) -> list[str]:
    for line, header in _separated(path, delimiter):
        if len(set(header)) < len(header):
            raise ExegeteError(f"{path}, line {line}: two columns have the same name: rename one")
        return header
    return []


def _separated_rows(path: Path, _: Sequence[str], delimiter: str | None) -> Iterator[PlacedRow]:
    rows = _separated(path, delimiter)
    header = next(rows)[1]
    for line, row in rows:
        where = f"{path}, line {line}"
        if len(row) != len(header):
            raise ExegeteError(
                f"{where}: {len(row)} columns where the header has {len(header)}: put the text in quotes?"
            )
        yield PlacedRow(where, dict(zip(header, row, strict=True)))


def _json_columns(path: Path) -> list[str]:
    return next((list(fields) for _, fields in read_jsonl(path)), [])


def _json_rows(path: Path, _: Sequence[str]) -> Iterator[PlacedRow]:
    for line, fields in read_jsonl(path):
        yield PlacedRow(f"{path}, line {line}", fields)


def _lines(path: Path, _: Sequence[str] = ()) -> Iterator[PlacedRow]:
    """The lines of a file of texts; empty ones are none."""
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if text := line.rstrip("\r\n"):
                yield PlacedRow(f"{path}, line {number}", {"text": text})


def _parquet_columns(path: Path) -> list[str]:
    import polars as pl

    try:
        return list(pl.read_parquet_schema(path))
    except FileNotFoundError:
        raise ExegeteError(f"no such file: {path}: check the path") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _not_parquet(path, error) from None


def _not_parquet(path: Path, error: BaseException) -> ExegeteError:
    why = (str(error).splitlines() or ["it can't be read"])[0]
    return ExegeteError(f"{path} is not a whole parquet file ({why}): write it again")


def _parquet_rows(path: Path, wanted: Sequence[str]) -> Iterator[PlacedRow]:
    import polars as pl

    columns = [name for name in _parquet_columns(path) if name in wanted]
    try:
        row = 0
        for frame in pl.scan_parquet(path).select(columns).collect_batches(maintain_order=True):
            for fields in frame.iter_rows(named=True):
                row += 1
                yield PlacedRow(f"{path}, row {row}", fields)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _not_parquet(path, error) from None


def _separated_by(delimiter: str | None) -> Format:
    return Format(partial(_separated_columns, delimiter=delimiter), partial(_separated_rows, delimiter=delimiter), True)


_CSV, _TSV, _JSONL = _separated_by(None), _separated_by("\t"), Format(_json_columns, _json_rows)
FORMATS: dict[str, Format] = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _TSV,
    ".tsv.gz": _TSV,
    ".jsonl": _JSONL,
    ".jsonl.gz": _JSONL,
    ".parquet": Format(_parquet_columns, _parquet_rows),
    ".txt": Format(lambda path: ["text"] if any(True for _ in _lines(path)) else [], _lines),
}
