"""Runs: complete, repeatable, resumable after a stop at any moment, and never another study's."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.answers.pages.build import keep_results, run_notes, write_run_report
from exegete.base import parquet
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.files import read_json, write_json
from exegete.base.progress import Progress, silent
from exegete.experiments.common.contract import recipes
from exegete.models.build import build
from exegete.runs.cell import apart, check_cell_data, companion_jobs
from exegete.runs.companions import required_recipes
from exegete.runs.engine.contract import SetAsideError
from exegete.runs.engine.local import LocalEngine
from exegete.runs.keys import code_hash
from exegete.runs.names import short_names
from exegete.runs.pieces import Piece, queues
from exegete.runs.run import finished_cells, lock_run, read_manifest, run_study
from exegete.runs.stages import Case
from exegete.runs.study import Cell, Study, Work, narrow_cells
from exegete.runs.tables import Finished
from exegete.training.checkpoint import Checkpoint
from tests.small import small_task


def table(run: Path) -> pl.DataFrame:
    return pl.read_parquet(run / "tables" / "agreement.parquet")


def here() -> LocalEngine:
    return LocalEngine(1)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_two_runs_with_the_same_seeds_are_the_same(study: Study, whole: Path, tmp_path: Path) -> None:
    again = run_study(study, tmp_path / "again", engine=here())
    assert_frame_equal(table(whole), table(again))
    assert_frame_equal(pl.read_csv(whole / "tables" / "models.csv"), pl.read_csv(again / "tables" / "models.csv"))
    first, second = (read_manifest(run)["cells"] for run in (whole, again))
    assert [cell["weights"] for cell in first] == [cell["weights"] for cell in second]


def test_a_run_is_complete(whole: Path, tmp_path: Path) -> None:
    rows = table(whole)
    assert rows.select(pl.struct("task", "model", "seed").n_unique()).item() == 4
    assert set(rows["measure"]) == {"tau", "tau_corrected", "gamma", "spearman", "fagin"}
    manifest = read_manifest(whole)
    assert manifest["cells"][0]["data"]["hash"]
    assert manifest["libraries"]["torch"]
    assert "Do importances agree?" in write_run_report(whole, tmp_path / "page.html").read_text()
    keep_results(whole, tmp_path / "kept")
    kept = {p.name for p in (tmp_path / "kept").iterdir()}
    tables = {"agreement_summary.csv", "agreement_correlation.csv", "models.csv"}
    assert {"manifest.json", "agreement_density.svg"} | tables <= kept


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_two_workers_find_the_same_numbers(study: Study, whole: Path, tmp_path: Path) -> None:
    told: list[str] = []
    with LocalEngine(2) as engine:
        run_study(study, tmp_path / "two", engine=engine, progress=lambda label, done, total: told.append(label))
    assert_frame_equal(table(whole), table(tmp_path / "two"))
    assert any("epoch 1" in label for label in told)
    assert any("leave_one_out" in label for label in told)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_one_cell_is_asked_by_two_workers_and_finds_the_same(study: Study, whole: Path, tmp_path: Path) -> None:
    told: list[str] = []
    one = study.cells[0]
    with LocalEngine(2) as engine:
        run_study(study, tmp_path / "one", [one], engine, lambda label, done, total: told.append(label))
    expected = table(whole).filter(task=short_names([one.task])[one.task], model=one.model, seed=one.seed)
    assert_frame_equal(expected, table(tmp_path / "one"))
    assert not list((tmp_path / "one" / "stages").glob(".*"))  # no lock is left
    assert any(f"{study.split} · agreement" in label for label in told)


def test_few_cells_are_taken_apart_and_the_longest_part_comes_first(study: Study, tmp_path: Path) -> None:
    more = [{"name": "permutation"}, {"name": "faithfulness", "texts": 5}, {"name": "agreement"}]
    many = Study.model_validate(study.model_dump() | {"experiments": more})
    work = Work(tmp_path, many, many.cells[0], "code")
    assert [(piece.part, piece.split) for piece in apart([work])] == [
        ("faithfulness", "test"), ("faithfulness", "dev"), ("agreement", "test"), ("permutation", "test"),
    ]  # fmt: skip
    assert [len(pieces) for pieces in queues([work], 2, False)] == [1, 4, 1]
    assert [len(pieces) for pieces in queues([work] * 2, 2, False)] == [10, 2]  # nobody waits for the last training
    assert [len(pieces) for pieces in queues([work] * 4, 2, False)] == [4]  # enough for two workers as they are
    assert [len(pieces) for pieces in queues([work], 1, False)] == [0, 0, 1]
    assert [len(pieces) for pieces in queues([work], 1, True)] == [1, 0, 1]  # trained first, where somebody is told


def test_companions_are_trained_one_by_one_each_once_and_before_what_waits_for_them(
    study: Study, tmp_path: Path
) -> None:
    more = [
        {"name": "seed_stability", "seeds": [1, 2]},
        {"name": "adversary_training", "seeds": [1], "unfrozen": False, "frozen_lams": [0.1]},
        {"name": "diagnostic"},
        {"name": "permutation"},
    ]
    many = Study.model_validate(study.model_dump() | {"experiments": more})
    work = Work(tmp_path, many, many.cells[0], "code")
    beside = companion_jobs([work])
    names = [(piece.part, piece.companion) for piece in beside]
    assert names[:3] == [
        ("seed_stability", "seed_1"),
        ("seed_stability", "seed_2"),
        ("adversary_training", "frozen_0.1"),
    ]
    assert ("adversary_training", "seed_1") not in names  # the same training as above
    assert [name for part, name in names if part == "diagnostic"][-1] == "imposed_adversary"
    assert next(piece.part for piece in apart([work])) == "permutation"
    built = many.built_experiments(work.cell.task)["diagnostic"]
    wanted = recipes(built, work.cell.model, 0)
    assert list(required_recipes(wanted, "")) == list(wanted)
    assert required_recipes(wanted, "imposed_adversary").keys() == {
        "adversary",
        "imposed_adversary",
    }  # what it builds on, first
    assert required_recipes(wanted, "nobody") == {}


class StoppedError(Exception):
    """Stands for a kill."""


@contextmanager
def stopped_at_write(number: int) -> Iterator[list[Path]]:
    """Stop at the n-th parquet file, before it appears."""
    written: list[Path] = []
    real = parquet.write_parquet

    def write(path: Path, frame: pl.DataFrame) -> None:
        if len(written) == number:
            raise StoppedError
        real(path, frame)
        written.append(path)

    with patch("exegete.runs.store.write_parquet", write), patch("exegete.runs.stages.write_parquet", write):
        yield written


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("at", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 3, 9))])
def test_a_run_that_was_stopped_goes_on_and_ends_the_same(study: Study, whole: Path, tmp_path: Path, at: int) -> None:
    with stopped_at_write(at), pytest.raises(StoppedError):
        run_study(study, tmp_path / "cut", engine=here())
    with pytest.raises(ExegeteError, match="not complete"):
        read_manifest(tmp_path / "cut")
    finished = [p for p in (tmp_path / "cut" / "stages").rglob("*") if p.suffix in (".parquet", ".json")]
    before = {p: p.stat().st_mtime_ns for p in finished}
    run_study(study, tmp_path / "cut", engine=here())
    assert_frame_equal(table(whole), table(tmp_path / "cut"))
    assert {p: p.stat().st_mtime_ns for p in before} == before


@pytest.mark.usefixtures("undrawn")
def test_a_complete_run_is_not_done_again(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    with (
        patch("exegete.runs.training.train_in_folder", side_effect=AssertionError),
        patch("exegete.runs.stages.score_frames", side_effect=AssertionError),
    ):
        run_study(study, run, [study.cells[0]], here())


@pytest.mark.usefixtures("undrawn")
def test_changed_code_makes_a_stage_stale(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    real = code_hash

    def changed(module: str) -> str:
        return "changed" if module == "exegete.importance.gradient" else real(module)

    with (
        patch("exegete.runs.keys.code_hash", changed),
        patch("exegete.runs.run.seals_of", return_value=None),  # which knows of a change by the files themselves
        patch("exegete.runs.training.train_in_folder", side_effect=AssertionError),
    ):
        before = set((run / "stages").iterdir())
        run_study(study, run, [study.cells[0]], here())
        new = {p.name.partition("-")[0] for p in set((run / "stages").iterdir()) - before}
    assert new == {"score", "experiment"}  # gradient's scores and what was made of them; the model stays


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_parts_of_a_study_add_up(study: Study, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_study(study, run, narrow_cells(study, [], ["*sparsemax*"], [1]), here())
    assert len(finished_cells(run, study)) == 1
    run_study(study, run, narrow_cells(study, [], [], [0]), here())
    assert [(c["model"], c["seed"]) for c in finished_cells(run, study)] == [
        (study.models[0], 0), (study.models[1], 0), (study.models[1], 1),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_some_cells_are_no_whole_study_and_only_missing_ones_are_handed_out(study: Study, tmp_path: Path) -> None:
    given: list[Cell] = []
    real = LocalEngine.map

    def counted(engine: LocalEngine, job: Any, items: Sequence[Any], progress: Progress = silent) -> Iterator[Any]:
        given.extend(
            piece.work.cell for piece in items if isinstance(piece, Piece) and piece.job is not check_cell_data
        )
        return real(engine, job, items, progress)

    with patch.object(LocalEngine, "map", counted):
        run = run_study(study, tmp_path / "run", study.cells[:2], here())
        run_study(study, run, None, here())
        assert given == list(study.cells)  # each once
        run_study(study, run, study.cells, here())
        assert len(finished_cells(run, study)) == len(given) == 4
        shutil.rmtree(next((run / "stages").glob("experiment-*")))
        run_study(study, run, None, here())
        assert len(given) == 8  # what is gone is made again
        path = next((run / "cells").glob("*.json"))
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seal": "older"}))
        (run / "manifest.json").unlink()  # as if it had been stopped
        run_study(study, run, None, here())
        assert len(given) == 9


@pytest.mark.usefixtures("undrawn")
def test_another_studys_folder_is_refused_and_left_alone(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    kept = (run / "manifest.json").read_text()
    other = study.model_copy(update={"seeds": (7,)})
    with pytest.raises(ExegeteError, match=r"another study .* other seeds"):
        run_study(other, run, engine=here())
    assert (run / "manifest.json").read_text() == kept
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("words")
    with pytest.raises(ExegeteError, match="not empty and no run folder"):
        run_study(study, tmp_path / "full", engine=here())


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_study_may_be_reworded_and_a_barren_folder_taken_over(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    reworded = study.model_copy(update={"title": "said better", "notes": ("a note",)})
    run_study(reworded, run, [study.cells[0]], here())
    assert json.loads((run / "study.json").read_text())["title"] == "said better"
    (tmp_path / "barren").mkdir()
    (tmp_path / "barren" / "study.json").write_text(json.dumps({"name": "failed before it did anything"}))
    run_study(study, tmp_path / "barren", [study.cells[0]], here())


@pytest.mark.usefixtures("undrawn")
def test_cells_of_other_code_or_other_data_are_not_mixed(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    (path,) = (run / "cells").glob("*.json")
    facts = json.loads(path.read_text())
    (run / "manifest.json").unlink()  # of a run that was stopped, nobody knows the checksums of cells
    path.write_text(json.dumps(facts | {"code": "older"}))
    with pytest.raises(ExegeteError, match=r"1 cells in .* another version of the code"):
        run_study(study, run, [study.cells[1]], here())
    path.write_text(json.dumps(facts | {"data": facts["data"] | {"hash": "other"}}))
    with pytest.raises(ExegeteError, match="different texts"):
        run_study(study, run, [study.cells[1]], here())


@pytest.mark.usefixtures("undrawn")
def test_half_written_files_are_swept_and_a_users_own_are_not(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    (run / ".gitignore").write_text("*")
    left = [
        run / "tables" / ".agreement.parquet.abc12345",
        run / "stages" / ".train.abc12345",
        run / ".manifest.json.abc",
    ]
    for path in left[1:]:
        path.write_text("half")
    left[0].mkdir()
    run_study(study, run, [study.cells[1]], here())
    assert not any(path.exists() for path in left)
    assert (run / ".gitignore").exists()


def test_models_with_equal_weights_and_other_projections_share_nothing(study: Study, tmp_path: Path) -> None:
    task = small_task()
    cases = []
    for spec in ("bilstm:size=8,hidden=8", "bilstm:size=8,hidden=8,projection=sparsemax"):
        checkpoint = Checkpoint(build(spec, task), "small", task.hash, 0, {}, {})
        cases.append(Case(tmp_path, "test", task, checkpoint, lambda label, done, total: None))
    assert cases[0].checkpoint.weights_hash == cases[1].checkpoint.weights_hash
    assert cases[0].content != cases[1].content


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        lock_run(tmp_path / "run"),
        pytest.raises(ExegeteError, match="another exegete is at work"),
        lock_run(tmp_path / "run"),
    ):
        pass


def test_an_unknown_part_is_one_sentence(study: Study) -> None:
    with pytest.raises(UsageError, match="unknown model of study"):
        narrow_cells(study, [], ["*entmax*"], [])
    with pytest.raises(UsageError, match="has no seed 9"):
        narrow_cells(study, [], [], [9])


@pytest.mark.usefixtures("undrawn")
def test_one_word_texts_and_constant_scores_are_counted_not_averaged(study: Study, tmp_path: Path) -> None:
    run = run_study(study, tmp_path / "run", [study.cells[0]], here())
    rows, summary = table(run), pl.read_parquet(run / "tables" / "agreement_summary.parquet")
    single = rows.filter((pl.col("n") == 1) & (pl.col("measure") == "tau"))
    assert single["value"].null_count() == len(single)
    everywhere = summary.filter((pl.col("class") == "all") & (pl.col("measure") == "tau"))
    undefined = rows.filter(pl.col("measure") == "tau").group_by("first", "second", maintain_order=True)
    assert everywhere["undefined"].to_list() == undefined.agg(pl.col("value").null_count())["value"].to_list()
    assert everywhere["mean"].null_count() == 0
    assert json.loads(json.dumps(everywhere.to_dicts(), allow_nan=False))


def test_a_device_that_is_not_here_is_told_before_anything_is_written(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(UsageError, match="there is no device 'cuda' here"):
        run_study(study.model_copy(update={"device": "cuda"}), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_run_belongs_to_one_kind_of_device(study: Study, tmp_path: Path, whole: Path) -> None:
    assert read_json(whole / "manifest.json", "run")["device"] == "cpu"
    assert read_json(whole / "study.json", "run")["device"] == "cpu"
    (tmp_path / "stages").mkdir()
    write_json(tmp_path / "study.json", study.model_dump(mode="json") | {"device": "cuda"})
    with pytest.raises(ExegeteError, match="was computed on cuda, not on cpu: name the same --device"):
        run_study(study, tmp_path, None, here())


@pytest.mark.parametrize("place", ["s3://bucket/run", "gs://bucket/run", "memory://run"])
def test_an_address_is_no_folder(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a folder is wanted here, not an address"):
        run_study(study, Path(place))
    assert not list(tmp_path.iterdir())


def in_halves(jobs: list[Work], workers: int, told: bool, grows: bool) -> list[list[Piece]]:
    return [[piece.halved() or piece for piece in pieces] for pieces in queues(jobs, workers, told, grows)]


@pytest.mark.slow
def test_halves_find_what_the_whole_finds(
    study: Study, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards: list[int] = []
    real = Case.portions

    def noted(case: Case, texts: int) -> list[slice]:
        shards.append(len(real(case, texts)))
        return real(case, texts)

    monkeypatch.setattr(Case, "portions", noted)
    monkeypatch.setattr("exegete.runs.pieces.queues", in_halves)
    found = run_study(study, tmp_path / "run", None, here())
    assert set(shards) == {2}
    assert_frame_equal(table(found), table(whole), abs_tol=1e-6)


def test_tables_that_are_lost_are_named_in_a_few_words(study: Study, tmp_path: Path) -> None:
    """Whoever runs a study is told of them in a sentence."""
    lost = Finished(tmp_path, study, "agreement", [{"task": "many", "model": "facts"}])
    assert "which are missing: tables and figures of agreement; all" in str(SetAsideError([lost], 1))


class Losing(LocalEngine):
    """An engine whose workers die at one cell."""

    def __init__(self, lost: Cell) -> None:
        super().__init__(1)
        self.lost = lost

    def __enter__(self) -> "Losing":
        return self

    def map(self, job: Any, items: Any, progress: Progress = silent) -> Any:
        """All pieces but those of the cell."""
        aside = [piece for piece in items if isinstance(piece, Piece) and piece.work.cell == self.lost]
        yield from super().map(job, [piece for piece in items if piece not in aside], progress)
        if aside:
            raise SetAsideError(aside, len(items))


@pytest.mark.slow
def test_what_is_missing_is_told_and_all_else_is_there(study: Study, whole: Path, tmp_path: Path) -> None:
    lost, out = study.cells[1], tmp_path / "run"
    with pytest.raises(SetAsideError, match=f"which are missing: {re.escape(str(lost))}"):
        run_study(study, out, None, Losing(lost))
    assert read_manifest(out)["missing"] == [str(lost)]
    assert run_notes(out)[0] == f"missing, as workers died at it (out of memory?): {lost}"
    assert len(finished_cells(out, study)) == len(study.cells) - 1
    run_study(study, out, None, here())
    assert read_manifest(out)["missing"] == []
    assert_frame_equal(table(out), table(whole))


def test_the_manifest_tells_what_stages_took(whole: Path) -> None:
    told = read_manifest(whole)["stages"]
    assert {"train", "predict", "score", "experiment"} <= set(told)
    assert told["train"]["count"] == 4
    assert all(kind["peak_mb"] > 50 and kind["seconds"] >= 0 for kind in told.values())
