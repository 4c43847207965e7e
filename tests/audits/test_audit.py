"""Auditing: which study answers what a user asks, with scores of another tool, quickly, and how long it takes."""

from pathlib import Path

import polars as pl
import pytest

from exegete.audits.audit import Asking, study_for, with_scores
from exegete.base.errors import UsageError
from exegete.runs.estimate import _told, estimate
from exegete.runs.study import Study, load_study


def test_the_quick_audit_trains_once_and_reads_few_texts() -> None:
    study = study_for(Asking(quick=True))
    assert len(study.cells) == 1
    built = study.built_experiments()
    assert all(each.texts is not None and each.texts <= 200 for each in built.values())
    assert not {"necessity", "seed_stability", "diagnostic", "adversary_training"} & set(built)
    other = study_for(Asking(task="rotten_tomatoes", model="average", quick=True))
    assert other.tasks == ("rotten_tomatoes",)  # no planted words: they need a training of their own
    assert other.name != study.name
    with pytest.raises(UsageError, match="built-in audit"):
        study_for(Asking(source="audit", quick=True))


def test_questions_are_asked_about_their_facts_too() -> None:
    assert "supporting_facts" in study_for(Asking(task="stories", model="pair")).built_experiments()
    assert "supporting_facts" not in study_for(Asking(task="sst", model="average")).built_experiments()


def test_scores_of_another_tool_are_one_more_method(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    pl.DataFrame({"example": [0], "token": [0], "score": [1.0]}).write_parquet(file)
    study = with_scores(load_study("audit"), [str(file)])
    entries = {entry["name"]: entry for entry in study.experiments}
    assert entries["agreement"]["against"] == ["attention", "gradient", "leave_one_out", f"given:file={file}"]
    assert entries["faithfulness"]["methods"][-1] == f"given:file={file}"
    assert entries["permutation"] == {entry["name"]: entry for entry in load_study("audit").experiments}["permutation"]
    assert study.name != "audit"


def test_the_time_is_told_before_it_starts(study: Study, whole: Path, tmp_path: Path) -> None:
    said = estimate(study, tmp_path, 2)
    assert said.startswith("this takes about ")
    assert "on 2 cores" in said
    assert estimate(study, whole) == ""  # it is there


@pytest.mark.parametrize(
    ("seconds", "said"), [(11, "20 seconds"), (80, "80 seconds"), (100, "2 minutes"), (7200, "2.0 hours")]
)
def test_times_as_people_say_them(seconds: float, said: str) -> None:
    assert _told(seconds) == said
