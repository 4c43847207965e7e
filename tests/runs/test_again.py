"""A complete run is not run again: nothing is loaded, trained or drawn, until something that determines it changes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from exegete.answers.pages.build import write_run_report
from exegete.importance.catalogue import IMPORTANCES
from exegete.models.ours.module import hash_tensors, hashed_once, weights_hash
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import read_manifest, run_study
from exegete.runs.seal import seals_of
from exegete.runs.study import Study
from tests.studied import reviews, small_study

pytestmark = pytest.mark.slow

MODEL = "average:size=8,hidden=8"
ASKED = {"name": "agreement", "ks": [], "topk": []}


@contextmanager
def counted(place: str) -> Iterator[list[object]]:
    """How often something is called inside."""
    module, _, name = place.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    calls: list[object] = []

    def noted(*args: object, **kwargs: object) -> object:
        calls.append(args)
        return real(*args, **kwargs)

    with patch(place, noted):
        yield calls


def one_cell(tmp_path: Path) -> tuple[Study, Path]:
    file = reviews(tmp_path / "reviews.csv", 60)
    study = small_study("again", file, [MODEL], ASKED).model_copy(update={"seeds": (0,)})
    return study, run_study(study, tmp_path / "run", engine=LocalEngine(1))


def ran_again(study: Study, run: Path) -> bool:
    with counted("exegete.runs.pieces.run_cell") as cells:
        run_study(study, run, engine=LocalEngine(1))
    return bool(cells)


def test_nothing_is_run_trained_or_drawn_again(tmp_path: Path) -> None:
    study, run = one_cell(tmp_path)
    first = write_run_report(run).read_bytes()
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock" and path.is_file()}
    with counted("exegete.runs.pieces.run_cell") as cells, counted("vl_convert.vegalite_to_svg") as drawn:
        run_study(study, run, engine=LocalEngine(1))
        page = write_run_report(run)
    assert not cells
    assert not drawn
    assert page.read_bytes() == first
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_some_cells_of_a_study_are_sealed_as_such(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 60)
    study = small_study("again", file, [MODEL], ASKED)
    first, second = study.cells
    run = run_study(study, tmp_path / "run", [first], LocalEngine(1))
    write_run_report(run)
    with counted("exegete.runs.run.write_tables") as tables, counted("exegete.answers.audit.judge") as judged:
        run_study(study, run, [first], LocalEngine(1))
        write_run_report(run)
        assert not tables
        assert not judged
        run_study(study, run, [second], LocalEngine(1))  # and both are in the tables now
        assert len(tables) == 1
        for cells in ([first], [second], None):
            run_study(study, run, cells, LocalEngine(1))
        assert len(tables) == 1
    assert read_manifest(run)["seal"] == whole(study)
    facts = next((run / "cells").glob("*.json"))
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"seal": "older"}))
    (run / "manifest.json").unlink()
    run_study(study, run, [second if first.seed == json.loads(facts.read_text())["seed"] else first], LocalEngine(1))
    assert read_manifest(run)["seal"] is None  # one of them was found under another


def test_every_chart_is_drawn_once_for_folder_and_report(tmp_path: Path) -> None:
    with counted("vl_convert.vegalite_to_svg") as drawn:
        _, run = one_cell(tmp_path)
        write_run_report(run)
    assert len(drawn) == len(list((run / "figures").glob("*.svg"))) > 0


def test_a_page_that_somebody_changed_is_written_again(tmp_path: Path) -> None:
    _, run = one_cell(tmp_path)
    first = write_run_report(run).read_bytes()
    (run / "report.html").write_text("mine")
    assert write_run_report(run).read_bytes() == first


@pytest.mark.parametrize("gone", ["tables/agreement.parquet", "figures/agreement_density.svg", "stages"])
def test_what_is_gone_is_made_again(tmp_path: Path, gone: str) -> None:
    study, run = one_cell(tmp_path)
    lost = run / gone if gone != "stages" else next((run / "stages").glob("experiment-*")) / "stage.json"
    lost.unlink()
    assert ran_again(study, run)
    assert lost.is_file()
    assert not ran_again(study, run)


def whole(study: Study) -> str:
    seals = seals_of(study)
    assert seals is not None
    return seals.whole


def test_other_texts_in_the_same_file_break_the_seal(tmp_path: Path) -> None:
    study, run = one_cell(tmp_path)
    before = read_manifest(run)["seal"]
    assert before == whole(study)
    with (tmp_path / "reviews.csv").open("a") as file:
        file.write("a fine last text,good\n")
    assert whole(study) != before
    assert ran_again(study, run)


def test_other_code_breaks_the_seal(tmp_path: Path) -> None:
    study, run = one_cell(tmp_path)
    with patch("exegete.runs.seal.package_hash", lambda: "other"):
        assert ran_again(study, run)


def test_a_users_own_code_is_never_sealed(tmp_path: Path) -> None:
    study, _ = one_cell(tmp_path)
    assert seals_of(study) is not None
    assert seals_of(study.model_copy(update={"plugins": ("mine.py",)})) is None
    IMPORTANCES.add("my_own", object, "something")
    assert seals_of(study) is None


def test_weights_are_hashed_once_for_a_cell_and_not_for_every_stage(tmp_path: Path) -> None:
    with counted("exegete.models.ours.module.hash_tensors") as hashed:
        one_cell(tmp_path)
    # The first weights (they are part of the training's key), the trained ones as they are kept, and the cell's own.
    assert len(hashed) <= 6


def test_what_is_written_to_is_hashed_again() -> None:
    module = torch.nn.Linear(2, 3)
    with hashed_once(), counted("exegete.models.ours.module.hash_tensors") as hashed:
        first = weights_hash(module)
        assert weights_hash(module) == first
        assert len(hashed) == 1
        with torch.no_grad():
            module.weight.add_(1)
        assert weights_hash(module) == hash_tensors(module.state_dict()) != first
