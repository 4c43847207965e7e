"""A run at an address: begun here, ended elsewhere, the same tables; and one sentence where it can't be there."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exegete.answers.pages.build import write_run_report
from exegete.base.errors import ExegeteError, UsageError
from exegete.cli import app
from exegete.runs import remote as remotely
from exegete.runs.engine.local import LocalEngine
from exegete.runs.remote import address_of, fetch_run, in_step, remote, user_path, work_on
from exegete.runs.run import read_manifest, run_study
from exegete.runs.study import Study
from exegete.tasks.spool import CACHE
from tests.studied import noting, study, undrawn, whole  # noqa: F401

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine."""
    moved(tmp_path / "here", monkeypatch)
    import_module("fsspec").filesystem("memory").store.clear()


def moved(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On to another machine, which has no copy of any run."""
    monkeypatch.setenv(CACHE, str(machine))


def run(study: Study, address: str, only: int | None = None) -> Path:  # noqa: F811
    with work_on(address) as folder:
        return run_study(study, folder, study.cells[:only] if only else None, LocalEngine(1))


def tables(folder: Path) -> dict[str, bytes]:
    found = (folder / "tables").glob("*agreement*")
    return {path.name: path.read_bytes() for path in found if "costs" not in path.name}


@pytest.mark.parametrize(
    "kind", ["memory", pytest.param("file", marks=pytest.mark.slow), pytest.param("dir", marks=pytest.mark.slow)]
)
def test_what_one_machine_began_another_ends(
    study: Study,  # noqa: F811
    whole: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    address = {"file": f"file://{tmp_path}/there", "memory": "memory://runs/mine", "dir": f"local://{tmp_path}/there"}[
        kind
    ]
    run(study, address, 1)
    assert len(json.loads((remote(address).copy / "manifest.json").read_text())["cells"]) == 1
    moved(tmp_path / "elsewhere", monkeypatch)
    trained: list[str] = []
    with noting(trained):
        folder = run(study, address)
    assert len(trained) == len(study.cells) - 1
    assert folder.is_relative_to(tmp_path / "elsewhere")
    assert tables(folder) == tables(whole)
    moved(tmp_path / "third", monkeypatch)
    with noting(trained):
        again = run(study, address)
    assert len(trained) == len(study.cells) - 1
    assert tables(again) == tables(whole)
    assert read_manifest(fetch_run(address))["cells"] == read_manifest(whole)["cells"]


@pytest.mark.slow
def test_what_was_done_before_an_error_is_there(
    study: Study,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = f"file://{tmp_path}/there"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("exegete.runs.run.write_tables", stop)
        with pytest.raises(KeyboardInterrupt):
            run(study, address)
    assert not (tmp_path / "there" / "manifest.json").exists()
    moved(tmp_path / "elsewhere", monkeypatch)
    trained: list[str] = []
    with noting(trained):
        run(study, address)
    assert not trained
    assert (tmp_path / "there" / "manifest.json").is_file()


def test_proofs_are_put_last_and_nothing_half_written_is_seen(
    study: Study,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put: list[str] = []
    real = remotely.Remote._put

    def noted(at: remotely.Remote, name: str) -> None:
        put.append(name)
        real(at, name)

    monkeypatch.setattr(remotely.Remote, "_put", noted)
    address = f"file://{tmp_path}/there"
    folder = run(study, address, 1)
    assert put[-1] == "manifest.json"
    for proof in (name for name in put if name.endswith("stage.json")):
        parts = [name for name in put if name.startswith(proof.removesuffix("stage.json")) and name != proof]
        assert all(put.index(name) < put.index(proof) for name in parts)
    assert not list((tmp_path / "there").rglob(".*"))
    (tmp_path / "there" / "stages" / ".beside-half").write_bytes(b"half")
    assert "stages/.beside-half" not in remote(address).there()
    assert user_path(folder / "report.html") == f"{address}/report.html"
    assert address_of(tmp_path) == ""


@pytest.mark.slow
def test_a_manifest_is_withdrawn_while_cells_are_made_again(
    study: Study,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = f"file://{tmp_path}/there"
    run(study, address, 1)

    def look(*_: object) -> None:
        assert not (tmp_path / "there" / "manifest.json").exists()
        raise ExegeteError("seen")

    monkeypatch.setattr("exegete.runs.run.write_tables", look)
    with pytest.raises(ExegeteError, match="seen"):
        run(study, address)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://bucket/run", "needs a driver that is not installed: .*s3fs"),
        ("nowhere://run", "'nowhere://run' is no address of a run"),
        ("file:///proc/run", "can't write file:///proc/run"),
    ],
)
def test_an_address_that_cannot_be_is_one_sentence(study: Study, address: str, said: str) -> None:  # noqa: F811
    with pytest.raises((ExegeteError, UsageError), match=said):
        run(study, address)
    with pytest.raises((ExegeteError, UsageError)):
        fetch_run(address)


def test_without_fsspec_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(remotely, "import_module", missing)
    with pytest.raises(ExegeteError, match=r"needs fsspec, which is not installed: pip install"):
        remote("memory://run")


def test_the_command_line_takes_an_address(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    toml = tmp_path / "small.toml"
    toml.write_text(
        f'tasks = ["{study.tasks[0]}"]\nmodels = ["{study.models[0]}"]\n[training]\nepochs = 1\nmetric = "accuracy"\n'
        '[[experiments]]\nname = "agreement"\nks = []\ntopk = []\ndraws = 2\n'
    )
    address = f"file://{tmp_path}/there"
    ran = CliRunner().invoke(app, ["run", str(toml), "--out", address, "--workers", "1", "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["report"] == f"{address}/report.html"
    assert (tmp_path / "there" / "report.html").is_file()
    moved(tmp_path / "elsewhere", monkeypatch)
    (tmp_path / "there" / "report.html").unlink()
    told = CliRunner().invoke(app, ["report", address])
    assert told.exit_code == 0, told.output
    assert (tmp_path / "there" / "report.html").is_file()
    heat = CliRunner().invoke(app, ["explain", "a fine b", "--run", address, "--with", "gradient", "--json", "-q"])
    assert heat.exit_code == 0, heat.output
    assert json.loads(heat.stdout)["methods"]
    assert write_run_report(fetch_run(address)).is_file()


def test_a_piece_puts_the_cells_that_it_made_and_no_old_ones(tmp_path: Path) -> None:
    address, there = f"file://{tmp_path}/there", tmp_path / "there" / "cells"
    at = remote(address)
    (at.copy / "cells").mkdir(parents=True)
    (at.copy / "cells" / "other.json").write_text("old")
    there.mkdir(parents=True)
    (there / "other.json").write_text("made by another machine")
    with in_step(address) as copy:
        (copy / "cells" / "mine.json").write_text("new")
    assert {path.name: path.read_text() for path in there.iterdir()} == {
        "mine.json": "new",
        "other.json": "made by another machine",
    }
