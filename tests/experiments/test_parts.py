"""Rows on disk, told of a group at a time: the tables of the same rows in memory."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.experiments.common.parts import AllRows, RowsPart
from exegete.experiments.faithfulness.experiment import Faithfulness

CELL = ("task", "model", "seed", "split")


def rows() -> pl.DataFrame:
    """Made-up values of two tasks, two seeds and two splits; a few are undefined."""
    kinds = {"task": ["a", "b"], "model": ["m"], "seed": [1, 0], "split": ["dev", "test"], "example": [*range(12)]}
    kinds |= {
        "method": ["attention", "random", "lrp"],
        "removal": ["zero", "delete"],
        "ranking": ["signed", "magnitude"],
    }
    frame = pl.DataFrame({"measure": ["comprehensiveness", "sufficiency", "flip", "log_odds", "never_flips"]})
    for name, values in reversed(kinds.items()):
        frame = pl.DataFrame({name: values}).join(frame, how="cross", maintain_order="left_right")
    fraction = pl.when(pl.col("measure").is_in(["flip", "never_flips"])).then(pl.lit("all")).otherwise(pl.lit("aopc"))
    noise = pl.struct(pl.all()).hash(seed=1).mod(997) / 997
    value = pl.when(noise > 0.02).then(noise)
    return frame.with_columns(fraction=fraction, n=pl.lit(5), value=value).sort("task", maintain_order=True)


@pytest.fixture
def parts(tmp_path: Path) -> AllRows:
    """A file for every five texts of a cell and split."""
    found = []
    frame = rows().with_columns(shard=pl.col("example") // 5)
    for number, (key, part) in enumerate(frame.group_by(*CELL, "shard", maintain_order=True)):
        path = tmp_path / f"part-{number}.parquet"
        part.drop(*CELL, "shard").write_parquet(path)
        found.append(RowsPart(path, dict(zip(CELL, key, strict=False))))
    return AllRows(found)


@pytest.mark.slow
def test_tables_are_those_of_all_rows(parts: AllRows) -> None:
    asked = Faithfulness(methods=("attention", "random", "lrp"), removals=("zero", "delete"))
    every = parts.whole()
    assert parts.rows == len(every) == len(rows())
    summary, tables = asked.streamed(parts)
    assert_frame_equal(summary, asked.summary(every), check_exact=True)
    expected = asked.tables(every)
    assert list(tables) == list(expected)
    for name, table in tables.items():
        assert_frame_equal(table, expected[name], rel_tol=1e-12, abs_tol=1e-12)
    assert len(tables["survival"]) > 0


def test_the_file_of_all_rows_is_the_same_every_time(parts: AllRows, tmp_path: Path) -> None:
    parts.sink(tmp_path / "one.parquet")
    parts.sink(tmp_path / "two.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "one.parquet"), parts.whole(), check_exact=True)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_groups_come_in_the_order_of_their_first_rows(parts: AllRows) -> None:
    kept = pl.col("measure") != "flip"
    found = dict(parts.groups(("split", "measure"), ["task", "example", "value"], kept))
    expected = parts.whole().filter(kept).partition_by("split", "measure", as_dict=True, maintain_order=True)
    assert list(found) == list(expected)
    for key, group in found.items():
        assert_frame_equal(group, expected[key].select("task", "example", "value"), check_exact=True)
