"""Which model is explained, and whose word orders the methods."""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import exegete as ex
from exegete.answers.alternatives import Readable
from exegete.answers.decision import Decision
from exegete.answers.explain import explain_prediction
from exegete.answers.trust import subject
from exegete.base.errors import ExegeteError
from exegete.base.files import write_json
from exegete.report.section import Variant
from exegete.runs.run import claim_run
from exegete.runs.study import Study
from tests.answers.explained_model import TEXT, checkpoint, saved

FEW = ("attention", "gradient:norm=l2", "random")


def run_folder(folder: Path, **cell: Any) -> Path:
    """What a complete run has of a model: its checkpoint, its cell and its leaderboard, attention first."""
    kept = saved(folder / "stages" / "train-k" / "checkpoint")
    facts = {"task": "small", "model": "m", "seed": 0, "training": "k", "weights": checkpoint().weights_hash} | cell
    write_json(folder / "manifest.json", {"cells": [facts]})
    board = pl.DataFrame(
        {
            "task": ["small"] * 3 + ["other"],
            "model": ["m"] * 4,
            "method": ["attention", "random", "leave_one_out:of=logit", "gradient:norm=l2"],
            "comprehensiveness": [0.3, 0.1, 0.2, 0.9],
        }
    )
    (folder / "tables").mkdir()
    board.write_csv(folder / "tables" / "faithfulness_leaderboard.csv")
    assert kept.is_dir()
    return folder


def test_a_run_orders_the_methods(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    found = explain_prediction(None, TEXT, FEW, run=run)
    assert [m.name for m in found.methods] == ["attention", "random", "gradient:norm=l2"]
    assert [m.vouched for m in found.methods] == [0.3, 0.1, None]  # of another task is not of this one
    assert found.heatmap().columns == ("τ att.", "in run", "here", "flip")
    assert [row.numbers[1] for row in found.heatmap().rows] == ["0.30", "0.10", "–"]
    assert f"test texts of {run}" in found.trust.sentence
    assert not found.trust.doubt
    told: list[str] = []
    same = ex.explain(None, TEXT, FEW, run=run, device="cpu", progress=lambda label, *_: told.append(label))
    assert [m.scores for m in same.methods] == [m.scores for m in found.methods]
    assert "explain · done" in told


def test_a_run_stands_for_its_first_model(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    (kept, trust), (same, its_own) = subject(run), subject(None, run)
    assert (kept.weights_hash, trust) == (same.weights_hash, its_own)
    assert trust.run == run


def test_a_checkpoint_inside_a_run_has_its_word(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    _, trust = subject(run / "stages" / "train-k" / "checkpoint")
    assert trust.run == run
    assert trust.comprehensiveness["attention"] == 0.3
    assert not subject(saved(tmp_path / "alone"))[1].comprehensiveness


def test_a_run_of_another_model_is_doubted(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", weights="else")
    _, trust = subject(saved(tmp_path / "mine"), run)
    assert "did not study this model" in trust.doubt
    found = explain_prediction(checkpoint(), TEXT, FEW, run=run)
    assert any("did not study this model" in said for said in found.heatmap().small_print)


def test_a_run_without_a_leaderboard_vouches_for_nothing(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    (run / "tables" / "faithfulness_leaderboard.csv").unlink()
    assert "no run vouches" in explain_prediction(None, TEXT, FEW, run=run).trust.sentence


def test_a_run_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="there is no run folder"):
        subject(None, tmp_path / "none")


def test_the_default_model_is_trained_where_the_audit_finds_it(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = study.model_copy(update={"models": study.models[:1], "seeds": (0,)})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("exegete.runs.study.load_study", lambda name: small)
    told: list[str] = []
    trained, trust = subject(None, progress=lambda label, done, total: told.append(label))
    assert told
    assert not trust.comprehensiveness
    run = Path("runs/audit")
    claim_run(run, small)  # the audit doesn't take the folder for a stranger's
    assert [path.parent.name for path in run.glob("stages/*/checkpoint")] == [f"train-{trained.key}"]
    facts = {**small.cells[0]._asdict(), "training": trained.key, "weights": trained.weights_hash}
    write_json(run / "manifest.json", {"cells": [facts]})
    told.clear()
    again, trust = subject(None, progress=lambda label, done, total: told.append(label))
    assert again.weights_hash == trained.weights_hash
    assert not told  # neither texts nor vectors are read again
    assert trust.run == run


@pytest.mark.slow
def test_explaining_imports_nothing_that_runs_studies() -> None:
    code = (
        "import sys, exegete.answers.explain, exegete.answers.pages.explanations\n"
        "heavy = {'scipy', 'altair', 'captum', 'datasets', 'transformers'} & set(sys.modules)\nassert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def audited_run(folder: Path, **changes: Any) -> Path:
    """The same, with what an audit kept of its answer."""
    best = Readable("lrp", 0.84, 0.78, 0.86, 171, Variant("all"))
    kept = {"answer": "Partly.", "criteria_version": 7, "goal": "faithful", "user": ""}
    kept |= {key: [] for key in ("tests", "untested", "readings", "findings", "beside")}
    decision = Decision("partly", "", (0.68, 0.75), (0.7, 0.5), 171, settled=True)
    kept |= {"decisions": [[["small", "m"], asdict(decision)]], "instead": [[["small", "m"], [best.to_json()]]]}
    run = run_folder(folder)
    write_json(run / "judged.json", {"key": "k", "audit": kept | changes})
    return run


def test_what_the_audit_answered_of_a_model_is_said_first(tmp_path: Path) -> None:
    run = audited_run(tmp_path / "run")
    found = explain_prediction(None, TEXT, FEW, run=run)
    said, alone, *_ = found.heatmap().reading
    assert said == f"Of this model the audit in {run} answered: Partly; read LRP instead."
    assert alone.startswith("This text alone: ")
    assert found.to_json()["trust"]["answer"] == said


@pytest.mark.parametrize("changes", [{"goal": "plausible"}, {"decisions": [[["small", "m"], {"answer": "of old"}]]}])
def test_an_answer_for_another_goal_or_of_another_version_is_not_told(tmp_path: Path, changes: dict[str, Any]) -> None:
    _, trust = subject(audited_run(tmp_path / "run", **changes))
    assert not trust.answer


def test_an_answer_on_another_model_is_not_told(tmp_path: Path) -> None:
    run = audited_run(tmp_path / "run")
    write_json(run / "manifest.json", {"cells": [{"task": "small", "model": "m", "training": "k", "weights": "other"}]})
    _, trust = subject(saved(tmp_path / "mine"), run)
    assert "did not study this model" in trust.doubt
    assert not trust.answer
