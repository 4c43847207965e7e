"""Shards: a question is asked shard by shard, by whoever is free, and is complete when all were asked."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.experiments.faithfulness.experiment import Faithfulness
from exegete.models.build import build
from exegete.runs import shards
from exegete.runs.stages import Case, experiment_stage
from exegete.runs.store import part, read_shards
from exegete.training.checkpoint import Checkpoint
from tests.small import small_task

ASKED = Faithfulness(("attention", "gradient", "random"), ("delete",), texts=8)


def case(run: Path) -> Case:
    task = small_task()
    checkpoint = Checkpoint(build("bilstm:size=8,hidden=8", task), "small", task.hash, 0, {}, {})
    return Case(run, "test", task, checkpoint, lambda label, done, total: None, texts=8)


def rows(folder: Path) -> pl.DataFrame:
    return pl.concat(pl.read_parquet(path) for path in read_shards(folder))


@pytest.fixture(autouse=True)
def _three_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "FEW", 3)


def test_a_question_is_complete_when_every_shard_was_asked(tmp_path: Path) -> None:
    whole, *_ = experiment_stage(case(tmp_path / "whole"), "faithfulness", ASKED)
    for number in (2, 0, 1):  # in any order
        at, scored, _ = experiment_stage(case(tmp_path / "cut"), "faithfulness", ASKED, number)
        assert part(at.folder, number).is_file()
        assert at.done == (number == 1)
        assert all(each.done == (number == 1) for each in scored.values())
    assert at.folder.name == whole.folder.name
    assert_frame_equal(rows(at.folder), rows(whole.folder))
    assert not list((tmp_path / "cut" / "stages").glob(".*"))  # no lock is left


def test_a_shard_that_is_there_is_not_asked_again(tmp_path: Path) -> None:
    first, *_ = experiment_stage(case(tmp_path), "faithfulness", ASKED, 2)
    there = part(first.folder, 2).stat().st_mtime_ns
    at, *_ = experiment_stage(case(tmp_path), "faithfulness", ASKED)
    assert at.done
    assert len(read_shards(at.folder)) == 3
    assert part(at.folder, 2).stat().st_mtime_ns == there
