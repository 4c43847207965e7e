"""What was judged is not judged again, and whatever it depends on brings it before the judge."""

import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.answers.audit import _judged_rows, audit_study, judge_run
from exegete.answers.context import MethodCost
from exegete.answers.criteria import load_criteria
from exegete.answers.judge import judge
from exegete.answers.judgement_cache import JUDGED, judgement_key, keep_judgement, read_judgement
from exegete.base.files import read_json, write_json
from exegete.experiments.tests import all_tests
from exegete.runs.engine.local import LocalEngine
from exegete.runs.study import Study
from tests.answers.cards import readable


@pytest.fixture
def run(study: Study, whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    audit_study(study, tmp_path / "run", engine=LocalEngine(1))
    return tmp_path / "run"


def judgements(study: Study, run: Path, **asked: Any) -> int:
    """How often a run is judged when it is looked at."""
    with patch("exegete.answers.audit.judge", wraps=judge) as judging:
        judge_run(study, run, **asked)
    return judging.call_count


def test_a_kept_judgement_is_the_judgement(study: Study, run: Path) -> None:
    kept = judge_run(study, run)
    (run / JUDGED).unlink()
    judged = judge_run(study, run)
    assert_frame_equal(kept.frame, judged.frame)
    for field in fields(kept):
        if field.name != "frame":  # which has no truth value
            assert getattr(kept, field.name) == getattr(judged, field.name)


def test_it_is_judged_once_and_again_where_anything_differs(study: Study, run: Path) -> None:
    assert judgements(study, run) == 0
    assert judgements(study, run, goal="sanity") == 1
    path = run / "tables" / "agreement.parquet"
    pl.read_parquet(path).with_columns(pl.col("value") * 0.5).write_parquet(path)
    assert judgements(study, run) == 1


def test_code_that_nobody_can_tell_is_judged_every_time(study: Study, run: Path) -> None:
    manifest = read_json(run / "manifest.json", "run")
    write_json(run / "manifest.json", manifest | {"seal": None})
    assert judgement_key(run, load_criteria(), "faithful") is None
    assert judgements(study, run) == 1


def test_other_criteria_are_another_judgement(study: Study, run: Path) -> None:
    stricter = load_criteria().model_dump()
    stricter["agrees"]["margin"] += 0.01
    write_json(run / "criteria.json", stricter)
    assert judgements(study, run) == 1


def test_all_of_it_reads_back_or_nothing_is_kept(study: Study, run: Path) -> None:
    (where, _), *_ = judge_run(study, run).decisions.items()
    found = replace(judge_run(study, run), instead={where: (readable("lrp", 0.5, MethodCost(1, 1, 2.5)),)})
    keep_judgement(run, "key", found)
    back = read_judgement(run, "key", found.frame)
    assert back is not None
    assert back.to_json() == found.to_json()
    assert back.instead == found.instead
    (run / JUDGED).unlink()
    keep_judgement(run, "key", replace(found, instead={where: (readable("lrp", float("nan")),)}))
    assert read_judgement(run, "key", found.frame) is None


def test_a_judge_reads_the_rows_that_tests_need(study: Study, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, path = study.built_experiments()["agreement"], run / "tables" / "agreement.parquet"
    every = pl.read_parquet(path)
    some = _judged_rows("agreement", built, path)
    assert set(some["measure"]) == {"tau", "tau_corrected"} < set(every["measure"])
    found = judge({"agreement": some}, study, load_criteria())
    assert found.tests
    assert found.tests == judge({"agreement": every}, study, load_criteria()).tests
    own = replace(all_tests()["agrees"], name="mine", statistic=lambda _: None)
    monkeypatch.setattr("exegete.answers.audit.all_tests", lambda: all_tests() | {"mine": own})
    assert_frame_equal(_judged_rows("agreement", built, path), every)  # nobody knows which rows it needs
