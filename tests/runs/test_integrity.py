"""Every file of a run is known by its checksum: what is damaged is named, refused by readers, and computed again."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from exegete.answers.pages.build import write_run_report
from exegete.base.errors import ExegeteError
from exegete.cli import main
from exegete.runs.engine.local import LocalEngine
from exegete.runs.integrity import inspect
from exegete.runs.remote import remote, work_on
from exegete.runs.results import Run
from exegete.runs.run import run_study
from exegete.runs.study import Study
from exegete.tasks.spool import CACHE
from tests.studied import noting, reviews, small_study, undrawn

__all__ = ["undrawn"]
pytestmark = pytest.mark.usefixtures("undrawn")
TABLE = "tables/agreement.parquet"
Made = tuple[Study, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A study of one cell, and its run with a report; tests take a copy."""
    home = tmp_path_factory.mktemp("made")
    asked = {"name": "agreement", "ks": ["1"], "topk": ["fagin"], "draws": 2}
    study = small_study("small", reviews(home / "reviews.csv"), ["average:size=4,hidden=4"], asked)
    study = study.model_copy(update={"seeds": (0,)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exegete.experiments.common.charts.draw_charts", lambda *_: None)
        run = run_study(study, home / "run", engine=LocalEngine(1))
        write_run_report(run)
    return study, run


@pytest.fixture
def run(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[1], tmp_path / "run"))


class Heard:
    """A listener who hears sentences."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def __call__(self, label: str, done: int, total: int) -> None:
        """How far the work is."""

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["exegete", *words])
    with pytest.raises(SystemExit) as done:
        main()
    return int(done.value.code or 0)


def flip(path: Path) -> None:
    """One bit of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def one_of(run: Path, pattern: str) -> Path:
    return sorted(run.glob(pattern))[0]


PARTS = (
    "stages/score-*/part-*.parquet",
    "stages/experiment-*/part-*.parquet",
    "stages/predict-*/part-*.parquet",
    "stages/train-*/checkpoint/model.safetensors",
    "stages/score-*/stage.json",
    "cells/*.json",
    TABLE,
    "tables/models.csv",
)


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("pattern", PARTS)
def test_what_is_damaged_is_named_and_computed_again(made: Made, run: Path, pattern: str, damage: object) -> None:
    study, whole = made
    path = one_of(run, pattern)
    damage(path)  # type: ignore[operator]
    name = path.relative_to(run).as_posix()
    assert name in [each.name for each in inspect(run).damages]
    heard = Heard()
    run_study(study, run, engine=LocalEngine(1), progress=heard)
    assert f"{path} is damaged, and is computed again" in heard.sentences
    assert not inspect(run).damages
    assert (run / TABLE).read_bytes() == (whole / TABLE).read_bytes()


def test_what_is_whole_is_not_computed_again(made: Made, run: Path) -> None:
    flip(one_of(run, "stages/score-*/part-*.parquet"))
    trained: list[str] = []
    with noting(trained):
        run_study(made[0], run, engine=LocalEngine(1))
    assert not trained


def test_a_part_of_a_run_that_was_stopped_is_computed_again(made: Made, run: Path) -> None:
    study, whole = made
    stage = one_of(run, "stages/experiment-*")
    for gone in (run / "manifest.json", stage / "stage.json", *(run / "cells").glob("*.json")):
        gone.unlink()
    truncate(one_of(stage, "part-*.parquet"))
    run_study(study, run, engine=LocalEngine(1))
    assert (run / TABLE).read_bytes() == (whole / TABLE).read_bytes()


def test_a_report_names_the_file_and_what_to_do(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = one_of(run, "stages/score-*/part-*.parquet")
    truncate(path)
    assert command(monkeypatch, "report", str(run)) == 1
    said = capsys.readouterr().err
    assert f"error: {path} is damaged (it is not what was written)" in said
    assert f"exegete check {run} --repair" in said


def test_check_tells_repairs_and_tells_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "check", str(run)) == 0
    assert "files are what was written" in capsys.readouterr().out
    flip(run / TABLE)
    assert command(monkeypatch, "check", str(run)) == 1
    assert f"damaged: {run / TABLE} (it is not what was written)" in capsys.readouterr().out
    assert command(monkeypatch, "check", str(run), "--repair", "--json", "--workers", "1") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["repaired"] == [TABLE]
    assert said["damaged"] == []


def older(run: Path) -> None:
    """The run as a version without checksums wrote it."""
    for path, field in ((run / "manifest.json", "checksums"), *((p, "parts") for p in run.glob("stages/*/stage.json"))):
        facts = json.loads(path.read_text())
        del facts[field]
        path.write_text(json.dumps(facts))


def test_a_run_of_an_older_version_is_read_and_told(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older(run)
    assert command(monkeypatch, "check", str(run)) == 0
    assert "have no checksums: written by an older version" in capsys.readouterr().out
    assert command(monkeypatch, "report", str(run)) == 0
    truncate(run / TABLE)
    assert command(monkeypatch, "report", str(run)) == 1
    assert f"{run / TABLE} is damaged (it can't be read)" in capsys.readouterr().err
    with pytest.raises(ExegeteError, match=r"agreement.parquet can't be read"):
        _ = Run.read(run)["agreement"].rows


def test_a_study_that_cannot_be_read_is_one_sentence(run: Path) -> None:
    facts = json.loads((run / "study.json").read_text())
    (run / "study.json").write_text(json.dumps({"nome" if key == "name" else key: facts[key] for key in facts}))
    with pytest.raises(ExegeteError, match=r"study.json is damaged"):
        write_run_report(run)


def test_what_came_from_memory_cannot_be_computed_again(made: Made, run: Path) -> None:
    deposit = run / "inputs" / "texts.parquet"
    deposit.parent.mkdir()
    shutil.copy(run / TABLE, deposit)
    (run / "manifest.json").unlink()
    run_study(made[0], run, engine=LocalEngine(1))
    flip(deposit)
    with pytest.raises(ExegeteError, match=r"texts.parquet is damaged .* came from memory: remove it"):
        run_study(made[0], run, engine=LocalEngine(1))


def test_what_is_damaged_at_an_address_is_put_there_again(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path / "here"))
    address, study = f"file://{tmp_path}/there", made[0]
    with work_on(address) as folder:
        run_study(study, folder, engine=LocalEngine(1))
    there = one_of(tmp_path / "there", "stages/score-*/part-*.parquet")
    before = there.read_bytes()
    flip(there)
    monkeypatch.setenv(CACHE, str(tmp_path / "elsewhere"))
    with work_on(address) as folder:
        run_study(study, folder, engine=LocalEngine(1))
    assert there.read_bytes() == before
    assert not inspect(remote(address).copy).damages


def test_an_export_has_no_absolute_path_and_can_be_read(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    assert command(monkeypatch, "check", str(run), "--export", str(copy)) == 0
    capsys.readouterr()
    home = str(tmp_path.parent).encode()
    assert not [path for path in copy.rglob("*") if path.is_file() and home in path.read_bytes()]
    assert command(monkeypatch, "check", str(copy)) == 0
    assert command(monkeypatch, "report", str(copy)) == 0
    assert command(monkeypatch, "check", str(run), "--export", str(copy)) == 2  # it is there already


def test_people_read_names_and_only_the_manifest_has_paths(made: Made) -> None:
    study, run = made
    home = str(run.parent).encode()
    told = [run / "report.html", *(run / "tables").iterdir(), *(run / "figures").glob("*")]
    assert not [path for path in told if home in path.read_bytes()]
    assert set(Run.read(run)["agreement"].rows["task"]) == {
        "file:…/reviews.csv:text=review,label=sentiment,tokenizer=whitespace"
    }
    assert list(json.loads((run / "manifest.json").read_text())["names"].values()) == list(study.tasks)
