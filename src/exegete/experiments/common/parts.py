"""Parts: the rows of an experiment as they lie on disk, of which a group at a time is read.

A thousand rows a text are too many to be held for a large corpus; a mean and its interval need one column of them. So
what is counted by groups of rows is counted group by group, in the order in which groups first appear in all rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

EVERY = pl.lit(True)
ROWS = 100_000  # of a row group of the file that has them all


class RowsPart(NamedTuple):
    """Some rows of one cell and split."""

    path: Path
    of: Mapping[str, Any]  # task, model, seed and split, which the file does not have

    def lazy(self) -> pl.LazyFrame:
        """The rows, with what they are of in front."""
        kinds = {"seed": pl.Int64}
        known = [pl.lit(value, dtype=kinds.get(name, pl.String)).alias(name) for name, value in self.of.items()]
        return pl.scan_parquet(self.path, glob=False).select(*known, pl.all())


class AllRows(Sequence[RowsPart]):
    """All rows of an experiment, in order."""

    def __init__(self, parts: Iterable[RowsPart]) -> None:
        self._parts = list(parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, at: Any) -> Any:
        return self._parts[at]

    @property
    def rows(self) -> int:
        """How many there are; read from the ends of files."""
        return sum(pl.scan_parquet(part.path, glob=False).select(pl.len()).collect().item() for part in self._parts)

    def whole(self) -> pl.DataFrame:
        """All rows at once."""
        return self.some(EVERY)

    def some(self, kept: pl.Expr) -> pl.DataFrame:
        """The kept rows at once; classes and translations are told of in different columns."""
        return pl.concat([part.lazy().filter(kept).collect() for part in self._parts], how="diagonal_relaxed")

    def sink(self, path: Path) -> None:
        """All rows as one file, some at a time."""
        together = pl.concat([part.lazy() for part in self._parts], how="diagonal_relaxed")
        together.sink_parquet(path, row_group_size=ROWS, maintain_order=True)

    def groups(
        self, by: Sequence[str], columns: Sequence[str], kept: pl.Expr = EVERY
    ) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
        """The kept rows of every combination of some columns, one combination after the other; of these columns."""
        for key in self.keys(by, kept):
            wanted = dict(zip(by, key, strict=True))
            of = [part for part in self._parts if all(part.of.get(name, wanted[name]) == wanted[name] for name in by)]
            same = [pl.col(name) == value for name, value in wanted.items()]
            yield key, pl.concat([part.lazy().filter(kept, *same).select(columns).collect() for part in of])

    def keys(self, by: Sequence[str], kept: pl.Expr = EVERY) -> list[tuple[Any, ...]]:
        """The combinations of some columns, in the order in which they first appear."""
        found = (part.lazy().filter(kept).select(by).unique(maintain_order=True).collect() for part in self._parts)
        return list(dict.fromkeys(key for frame in found for key in frame.iter_rows()))
