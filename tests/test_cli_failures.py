"""Nothing computed is lost because a name, a figure or a page fails: the answer is printed, the failure said."""

import json
import sys
import warnings
from pathlib import Path

import pytest

import exegete as ex
from exegete.answers.request import AuditRequest, study_for
from exegete.cli import main
from exegete.runs.study import name_from, read_study
from tests.studied import reviews, undrawn

__all__ = ["undrawn"]
ODD = "my [1] (2), 😀 'x' & co"
MODEL = "average:size=4,hidden=4"
DEFECT = "no such ink"


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["exegete", *words])
    with pytest.raises(SystemExit) as done:
        main()
    return int(done.value.code or 0)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small audit in a file with a name of its own, of a file with another."""
    task = f"file:{reviews(tmp_path / f'{ODD}.csv'.replace(',', ''))}:text=review,label=sentiment,tokenizer=whitespace"
    path = tmp_path / f"{ODD}.toml"
    path.write_text(
        f'tasks = ["{task}"]\nmodels = ["{MODEL}"]\nseeds = [0]\n[training]\nepochs = 1\nmetric = "accuracy"\n'
        '[[experiments]]\nname = "agreement"\nks = ["1"]\ndraws = 2\n'
    )
    return path


def broken(*_: object, **__: object) -> None:
    raise ValueError(DEFECT)


def audited(monkeypatch: pytest.MonkeyPatch, study: Path, *words: str) -> int:
    return command(monkeypatch, "audit", str(study), "--out", str(study.parent / ODD), "--workers", "1", *words)


@pytest.mark.usefixtures("undrawn")
def test_a_file_and_a_folder_may_have_any_name(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited(monkeypatch, study) == 0
    assert "\nreport: " in capsys.readouterr().out
    assert command(monkeypatch, "report", str(study.parent / ODD)) == 0
    assert read_study(str(study)).name == name_from(ODD)


@pytest.mark.usefixtures("undrawn")
def test_places_are_printed_with_their_brackets(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (task,), out = read_study(str(study)).tasks, study.parent / "model [bold] [x]"
    trained = ("--model", MODEL, "--training", "epochs=1", "--out", str(out))
    assert command(monkeypatch, "train", "--task", task, *trained) == 0
    assert capsys.readouterr().out.endswith(f"checkpoint in {out}\n")
    csv = study.parent / "words [x].csv"
    assert command(monkeypatch, "words", "--model", str(out), "--task", task, "--least", "1", "--csv", str(csv)) == 0
    assert capsys.readouterr().out.endswith(f"words: {csv}\n")


def test_a_run_gets_a_name_from_any_file(tmp_path: Path) -> None:
    path = reviews(tmp_path / "my [1] (2) 😀.csv")
    made = study_for(AuditRequest(task=f"file:{path}:text=review,label=sentiment", model=MODEL, quick=True))
    assert made.name.startswith("audit_quick_file_my_1_2_.csv_")
    deep = reviews(tmp_path / f"{'n' * 240}.csv")
    long = study_for(AuditRequest(task=f"file:{deep}:text=review,label=sentiment", model=MODEL, quick=True))
    assert len(long.name) < 120


def test_a_figure_that_fails_costs_neither_tables_nor_answer(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("exegete.experiments.common.charts.draw_charts", broken)
    assert audited(monkeypatch, study, "--quiet") == 1
    said = capsys.readouterr()
    assert "\nUndecided." in said.out
    assert "the figures of agreement can't be drawn (ValueError: no such ink); its tables are kept" in said.err
    assert "Traceback" not in said.err
    assert (study.parent / ODD / "tables" / "agreement.parquet").is_file()
    monkeypatch.setattr("exegete.experiments.common.charts.draw_charts", lambda *_: None)
    assert audited(monkeypatch, study, "--quiet") == 0  # what failed is tried again


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_page_that_fails_does_not_cost_the_answer(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    monkeypatch.setattr("exegete.answers.pages.document.render", broken)
    assert audited(monkeypatch, study, "--quiet", *(["--json"] if as_json else [])) == 1
    said = capsys.readouterr()
    if as_json:
        answer = json.loads(said.out)
        assert answer["answer"]
        assert answer["report"] is None
    else:
        assert "\nUndecided." in said.out
    assert "the report can't be written (ValueError: no such ink)" in said.err


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ["exegete.cli.audit.show_known_first", "exegete.answers.pages.build.scorecards"])
def test_a_table_that_fails_does_not_cost_the_answer(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr(name, broken)
    assert audited(monkeypatch, study, "--quiet") == 1
    said = capsys.readouterr()
    assert "\nUndecided." in said.out
    assert "can't be shown (ValueError: no such ink)" in said.err


def test_from_python_a_figure_that_fails_is_a_warning(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exegete.experiments.common.charts.draw_charts", broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ex.audit(study=study, out=study.parent / "run", workers=1)
    assert found.answer
    assert any("can't be drawn" in str(each.message) for each in caught)
