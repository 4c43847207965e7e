"""Calibrating: draws are audited as the audit asks, kept line by line, and votes are of one way of asking."""

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from exegete.answers import goals
from exegete.answers.criteria import VERSION, Criteria, load_criteria
from exegete.base.errors import ExegeteError
from exegete.cli import app
from exegete.report.theme import to_svg
from exegete.runs.study import Study, read_study
from exegete.wings.calibration import calibrate as calibrating
from exegete.wings.calibration.calibrate import LINES, Calibration, CalibrationPlan, calibrate, write_calibration
from exegete.wings.calibration.count import error_bound
from exegete.wings.calibration.draws import AuditedDraw, draw_line, mediation_of
from exegete.wings.calibration.figure import calibration
from exegete.wings.calibration.thresholds import answer_at
from exegete.wings.calibration.votes import vote_reason, votes_file

pytestmark = pytest.mark.slow

SOME = ("sharp cue", "unread copy")


@pytest.fixture(scope="module")
def criteria() -> Criteria:
    return load_criteria()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Calibration]:
    folder = tmp_path_factory.mktemp("calibration")
    return folder, calibrate(CalibrationPlan(SOME, 2, ("quick",)), folder)


def test_it_asks_as_the_audits_do() -> None:
    studies = {"quick": "audit_quick", "default": "audit", "hf quick": "audit_hf_quick", "hf": "audit_hf"}
    for audit, study in studies.items():
        ours, theirs = mediation_of(audit), read_study(study).built_experiments()["mediation"]
        for name in ("texts", "removals", "companies", "draws", "words", "seed"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.methods == ("attention",)


def test_a_copy_that_is_not_read_is_a_no(criteria: Criteria) -> None:
    line = draw_line(AuditedDraw("unread copy", 1, "quick"), criteria)
    assert (line["truth"], line["grounds"], line["answer"]) == ("unread", "unread+flat", "no")
    assert line["verdicts"]["reads"] == "fails"


def test_criteria_that_nobody_calibrated_yet_are_asked_as_if_they_were(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("version = 99\n[ranks]\nmargin = 0.65\n")
    assert draw_line(AuditedDraw("sharp cue", 0, "quick"), load_criteria(own))["answer"] == "yes"


def test_answers_at_our_thresholds_are_those_of_the_audit(kept: tuple[Path, Calibration], criteria: Criteria) -> None:
    ours, partly = (criteria[name].margin for name in ("reads", "carries", "ranks")), criteria["ranks"].partly
    lines, at = kept[1].lines, tuple(ours)
    assert len(lines) == 4
    assert partly is not None
    found = [answer_at(line, at, partly, mediation_of(line["audit"]).tolerance) for line in lines]  # type: ignore[arg-type]
    assert found == [line["answer"].removesuffix(" by size") for line in lines]


def test_a_draw_is_audited_once(kept: tuple[Path, Calibration], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, found = kept

    def never(*_: Any) -> Any:
        raise AssertionError("a draw that was kept is audited again")

    monkeypatch.setattr(calibrating, "draw_line", never)
    with (folder / LINES).open("a", encoding="utf8") as file:
        file.write('{"family": "sharp')  # stopped while it wrote
    again = calibrate(CalibrationPlan(SOME, 2, ("quick",)), folder)
    assert again.draws.equals(found.draws)


def test_a_table_that_is_broken_in_the_middle_is_refused(tmp_path: Path) -> None:
    (tmp_path / LINES).write_text('{"family"\n{}\n', encoding="utf8")
    with pytest.raises(ExegeteError, match="broken in line 1"):
        calibrate(CalibrationPlan(SOME, 1, ("quick",)), tmp_path)


def test_what_is_kept(kept: tuple[Path, Calibration], tmp_path: Path) -> None:
    write_calibration(kept[1], CalibrationPlan(SOME, 2, ("quick",)), tmp_path)
    assert pl.read_csv(tmp_path / "draws.csv").height == 4
    assert pl.read_csv(tmp_path / "families.csv")["family"].to_list() == [*SOME, "all families"]
    assert set(pl.read_csv(tmp_path / "left_out.csv")["family"]) == set(SOME)
    assert pl.read_csv(tmp_path / "truth_answer.csv")["n"].sum() == 4
    assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf8"))["draws"] == 4
    assert "Γ" in (tmp_path / "calibration.svg").read_text(encoding="utf8")
    told = tomllib.loads((tmp_path / "votes.toml").read_text(encoding="utf8"))
    assert (told["version"], told["settings"]) == (VERSION, [goals.settings_hash()])
    assert not told["reads"]["votes"]  # two draws show nothing
    assert told["ranks"]["why"].startswith("of 4 audits of models whose truth is known")


def test_an_empty_figure_says_so(kept: tuple[Path, Calibration]) -> None:
    assert "nothing to show" in to_svg(calibration(kept[1].draws.head(0), kept[1].criteria))


def table(wrong: int) -> pl.DataFrame:
    """A calibration of one family and all, as it is counted."""
    row = {
        "audit": "quick",
        "known": "no",
        "n": 60,
        "right": 60 - wrong,
        "wrong": wrong,
        "open": 0,
        "passes": wrong < 2,
    }
    row["wrong_at_most"] = error_bound(wrong, 60)
    return pl.DataFrame([row | {"family": "a"}, row | {"family": "all families"}])


def test_whoever_passes_votes(criteria: Criteria) -> None:
    assert tomllib.loads(votes_file(table(0), criteria))["reads"]["votes"]
    assert not tomllib.loads(votes_file(table(2), criteria))["reads"]["votes"]
    assert vote_reason(table(2)).endswith("fewer than 9 in 10 settled: a")


@pytest.fixture
def voted(monkeypatch: pytest.MonkeyPatch, criteria: Criteria) -> None:
    told = tomllib.loads(votes_file(table(0), criteria))
    monkeypatch.setattr(goals, "read_calibration", lambda: told)


@pytest.mark.usefixtures("voted")
def test_votes_are_of_our_criteria_asked_as_we_do(criteria: Criteria) -> None:
    assert goals.uncalibrated(criteria) == ""
    assert goals.votes("reads", "faithful", criteria)
    assert not goals.votes("reads", "plausible", criteria)


@pytest.mark.usefixtures("voted")
def test_another_version_of_the_criteria_takes_the_votes_away(criteria: Criteria) -> None:
    other = criteria.model_copy(update={"version": VERSION + 1})
    assert not goals.votes("ranks", "faithful", other)
    assert f"criteria of version {VERSION + 1}" in goals.uncalibrated(other)


@pytest.mark.usefixtures("voted")
def test_criteria_of_ones_own_take_the_votes_away(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"version = {VERSION}\n[ranks]\nmargin = 0.6\n", encoding="utf8")
    mine = load_criteria(path)
    assert not goals.votes("ranks", "faithful", mine)
    assert "no test may decide" in goals.uncalibrated(mine)
    assert goals.votes("used", "sanity", mine)  # what was never calibrated has no vote to lose


@pytest.mark.usefixtures("voted")
def test_another_way_of_asking_takes_the_votes_away(criteria: Criteria) -> None:
    def asking(**settings: Any) -> Study:
        entry = {"name": "mediation", **settings}
        return Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "experiments": [entry]})

    assert "another way" in goals.uncalibrated(criteria, asking(removals=["delete"]))
    assert goals.uncalibrated(criteria, asking(texts=60)) == ""  # fewer texts are less sure, and asked the same


def test_without_a_calibration_nothing_decides(monkeypatch: pytest.MonkeyPatch, criteria: Criteria) -> None:
    monkeypatch.setattr(goals, "read_calibration", dict)
    assert "Nothing was calibrated" in goals.uncalibrated(criteria)


def test_the_command(kept: tuple[Path, Calibration]) -> None:
    folder, _ = kept
    asked = ["calibrate", "--draws", "2", "--quick", "--out", str(folder), "--workers", "1"]
    asked += [part for family in SOME for part in ("--family", family)]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["draws"], told["wrong"]) == (4, 0)
    assert Path(told["figure"]).is_file()
    shown = CliRunner().invoke(app, [*asked, "--quiet"])
    assert "unread copy" in shown.stdout
    refused = CliRunner().invoke(app, ["calibrate", "--family", "nobody"])
    assert refused.exit_code != 0
