"""Nobody is left behind: checkpoints, run folders and criteria of earlier versions are still good for what they were.

The folders beside this file were written by the versions that they are named after, and are never written again.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from exegete.answers.audit import judge_run
from exegete.base.files import read_json
from exegete.cli import app
from exegete.models.settings import MODELS
from exegete.runs.run import STUDY, claim_run, finished_cells
from exegete.runs.study import Study, load_study
from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import load_checkpoint

KEPT = Path(__file__).parent / "0.1"
EXPECTED = json.loads((KEPT / "expected.json").read_text(encoding="utf8"))
TOLERANCE = 1e-5  # another machine may round otherwise


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what was kept, from which commands are run."""
    shutil.copytree(KEPT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*arguments: str) -> Any:
    """What a command answers, for machines."""
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def study_of(run: Path) -> Study:
    return Study.model_validate(read_json(run / STUDY, "run"))


YOUNGER = {"spelled", "hf"}  # than 0.1: of 0.2, which is not out yet


def test_every_kind_of_model_is_kept() -> None:
    kinds = {read_json(path, "checkpoint")["model"].partition(":")[0] for path in KEPT.glob("checkpoints/*/*.json")}
    assert kinds == {*MODELS} - YOUNGER, "a kind that is younger than 0.1 needs a kept checkpoint of its own version"


@pytest.mark.parametrize("name", [*EXPECTED])
def test_a_checkpoint_predicts_what_it_did(folder: Path, name: str) -> None:
    model, expected = load_checkpoint(Path("checkpoints", name)).model, EXPECTED[name]
    examples = [e for e in load_task(expected["task"]).split("test") if e.id in expected["texts"]]
    assert [e.id for e in examples] == expected["texts"]  # the same texts, split as they were
    with torch.no_grad():
        logits = model.trace(model.collate(examples)).logits
    torch.testing.assert_close(logits, torch.tensor(expected["logits"]), atol=TOLERANCE, rtol=TOLERANCE)


def test_a_checkpoint_is_explained_as_it_was_with_the_word_of_its_run(folder: Path) -> None:
    expected = json.loads(Path("explained.json").read_text(encoding="utf8"))
    [checkpoint] = Path("audit").glob("stages/train-*/checkpoint")
    methods = ",".join(method["name"] for method in expected["methods"])
    by_model = said("explain", expected["text"], "--model", str(checkpoint), "--with", methods)
    by_run = said("explain", expected["text"], "--run", "audit", "--with", methods)
    for found in (by_model, by_run):
        assert {name: found[name] for name in ("prediction", "words", "unknown")} == {
            name: expected[name] for name in ("prediction", "words", "unknown")
        }
        assert found["probabilities"] == pytest.approx(expected["probabilities"], abs=TOLERANCE)
        assert [method["name"] for method in found["methods"]] == [method["name"] for method in expected["methods"]]
        for now, then in zip(found["methods"], expected["methods"], strict=True):
            assert now["scores"] == pytest.approx(then["scores"], abs=TOLERANCE)
            assert now["vouched"] == then["vouched"]  # read from the run's own leaderboard


def test_a_run_is_judged_by_the_rules_of_today(folder: Path) -> None:
    """Its statistics are what they were. It has 30 texts: today's intervals give no verdict below 40."""
    then = pl.read_csv("audit/tables/scorecard.csv").with_columns(pl.col("against").fill_null(""))
    now = judge_run(study_of(Path("audit")), Path("audit")).scorecard
    assert then.height == 8
    numbers = ["statistic", "chance", "threshold"]
    words = ["task", "model", "name", "n", "against", "about", "criterion", "paper"]
    assert_frame_equal(now.select(words), then.select(words), check_dtypes=False)
    assert_frame_equal(now.select(numbers), then.select(numbers), check_dtypes=False, abs_tol=1e-6)
    assert set(now["verdict"]) == {"cannot tell"}


def test_a_run_is_judged_by_its_own_criteria(folder: Path) -> None:
    criteria = read_json(Path("audit/criteria.json"), "criteria")
    criteria["used"]["margin"] = 0.9  # a criterion of the user's own, which this model fails
    Path("audit/criteria.json").write_text(json.dumps(criteria), encoding="utf8")
    found = judge_run(study_of(Path("audit")), Path("audit"))
    assert {test.name: test.threshold for test in found.tests}["used"] == 0.9
    assert found.criteria_version == criteria["version"]


def test_a_run_gets_its_page(folder: Path) -> None:
    page = Path(said("report", "audit", "--out", "page.html")["report"]).read_text(encoding="utf8")
    told = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for name in ("agrees with saliency", "matches the best method", "sensitive to shuffling"):
        assert f"{name.replace('_', ' ')} " in told
    assert "bilstm:size=8,hidden=4" in told
    assert "0.117" in told  # `used`, as the kept scorecard has it


def test_the_same_study_goes_on_in_its_folder(folder: Path) -> None:
    study = load_study("study.toml")
    claim_run(Path("audit"), study)  # it is no other study, whatever settings studies have learnt since
    assert len(finished_cells(Path("audit"), study)) == 1
