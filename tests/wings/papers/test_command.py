"""`exegete reproduce`: what a person types, what they read, and the exit code."""

import json
from pathlib import Path

import pytest

from tests.test_cli import call

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"


@pytest.mark.parametrize("page", ["docs/how-to/reproduce.md", "docs/reference/command-line.md"])
def test_the_first_example_of_a_page_runs_with_what_an_install_brings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, page: str
) -> None:
    monkeypatch.delenv("EXEGETE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(RESULTS)
    lines = (ROOT / page).read_text(encoding="utf8").splitlines()
    example = next(line.split() for line in lines if line.startswith("exegete reproduce "))
    assert call(monkeypatch, *example[1:]) == 0
    assert "reproduced" in capsys.readouterr().out


def test_kept_results_are_compared_and_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    words = ("reproduce", "serrano_smith_2019:T2", "--from", str(RESULTS), "--markdown", str(page))
    assert call(monkeypatch, *words, "--results", str(tmp_path / "kept")) == 0
    shown = capsys.readouterr().out
    assert "Of 16 published numbers or claims: 4 direction only, 12 impossible." in shown
    assert "deviates: neither" in shown
    out = tmp_path / "runs" / "reproduce" / "serrano_smith_2019"
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "reproduction.csv"]
    assert json.loads((out / "manifest.json").read_text())["studies"]["serrano_smith_2019"]["cells"] == 16
    assert (tmp_path / "kept" / "serrano_smith_2019.csv").read_bytes() == (out / "reproduction.csv").read_bytes()
    assert "only the highest weight flips it" in page.read_text(encoding="utf8")


def test_json_holds_every_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "reproduce", "wiegreffe_pinter_2019", "--from", str(RESULTS), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["rows"]) == sum(said["counts"].values()) == 18
    assert {"published", "ours", "low", "high", "seeds", "n", "verdict", "reason"} <= set(said["rows"][0])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("meister_2020",), 2, "did you mean 'meister_2021'"),
        (("meister_2021:T16",), 2, "unknown table of meister_2021 'T16'"),
        (("meister_2021", "--from", "nowhere"), 1, "there is no folder nowhere"),
        (("meister_2021", "--from", ".", "--quick"), 2, "give one of them"),
        (("vashishth_2019:F5",), 1, "it needs annotators"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "reproduce", *words) == code
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_studies_are_run_where_run_would_run_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The studies themselves are too long for a test: who is asked to run what is looked at."""
    ran: list[tuple[str, Path, int]] = []
    monkeypatch.setattr(
        "exegete.wings.papers.reproduce.run_study",
        lambda study, out, cells, engine, progress: ran.append((study.name, out, len(cells))),
    )
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "reproduce", "neely_schouten_2020:T1", "--quick", "--quiet") == 0
    assert ran == [("neely_schouten_2020", Path("runs/neely_schouten_2020"), 1)]
    assert "16 not run" in capsys.readouterr().out
