"""Rows on disk, told of a group at a time: the tables of the same rows in memory."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.experiments.agreement.experiment import Agreement
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
    return written(rows(), tmp_path)


def written(frame: pl.DataFrame, folder: Path) -> AllRows:
    """A file for every five texts of a cell and split."""
    found = []
    cut = frame.with_columns(shard=pl.col("example") // 5)
    for number, (key, part) in enumerate(cut.group_by(*CELL, "shard", maintain_order=True)):
        path = folder / f"part-{number}.parquet"
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


def agreed() -> pl.DataFrame:
    """Rows of an agreement: two models, one of many classes, whose seeds predict different ones."""
    kinds: dict[str, list[Any]] = {
        "task": ["t"],
        "model": ["m", "w"],
        "seed": [0, 1],
        "split": ["test"],
        "example": list(range(20)),
        "first": ["attention", "random"],
        "second": ["gradient", "lrp"],
        "measure": ["tau", "fagin"],
        "k": ["1", "3"],
    }
    frame = pl.DataFrame({"none": [0]})
    for name, values in kinds.items():
        frame = frame.join(pl.DataFrame({name: values}), how="cross", maintain_order="left_right")
    noise = pl.struct(pl.all()).hash(seed=1).mod(997) / 997
    many = pl.when(pl.col("model") == "m").then(2).otherwise(20)
    predicted = pl.concat_str(pl.lit("c"), pl.struct("example", "seed", "model").hash(seed=2) % many)
    numbers = {"value": pl.when(noise > 0.05).then(noise), "p": noise / 3, "chance": noise / 9}
    return frame.drop("none").with_columns(predicted=predicted, maximum=1 - noise / 7, **numbers)


def test_an_agreement_is_told_of_pair_by_pair(tmp_path: Path) -> None:
    asked = Agreement(against=("attention", "gradient", "lrp"))
    parts = written(agreed(), tmp_path)
    every = parts.whole()
    summary, tables = asked.streamed(parts)
    assert_frame_equal(summary, asked.summary(every), check_exact=True)
    assert {"all", "c0", "c1"} == set(summary["class"]) == set(summary.filter(pl.col("model") == "m")["class"])
    assert set(summary.filter(pl.col("model") == "w")["class"]) == {"all"}
    assert_frame_equal(tables["correlation"], asked.tables(every)["correlation"], check_exact=True)
    shown = parts.some(asked.shown)
    assert_frame_equal(shown, every.filter(pl.col("measure") == "tau"), check_exact=True)
