"""Growing: more texts are asked into the same run; nothing is trained again, and what is known stays as it is."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from exegete.answers.audit import audit_study
from exegete.answers.budget import REST, Asking, Budget, asked_texts, begin_study, with_texts
from exegete.answers.criteria import load_criteria
from exegete.base.errors import ExegeteError
from exegete.base.progress import silent
from exegete.cli import main
from exegete.runs.cell import cached_task
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study, study_of
from exegete.runs.study import Study
from exegete.tasks.disk import column_of
from exegete.tasks.selection import choose_texts, in_steps, keyed_order, look_points, steps
from tests.answers.cards import grading_that
from tests.runs.test_integrity import Heard, flip
from tests.small import texts
from tests.studied import noting, reviews, small_study, undrawn

__all__ = ["undrawn"]
pytestmark = pytest.mark.usefixtures("undrawn")
TABLE = "tables/mediation.parquet"
MEDIATION = {"name": "mediation", "methods": ["attention", "gradient"], "draws": 1, "choosing": 12, "texts": 50}
MODELS = ["bilstm:size=8,hidden=8", "average:size=8,hidden=8"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growing")


@pytest.fixture(scope="module")
def study(home: Path) -> Study:
    """One model; some 120 texts may be asked."""
    found = small_study("grown", reviews(home / "reviews.csv", 1200), MODELS[:1], MEDIATION)
    return found.model_copy(update={"seeds": (0,)})


@pytest.fixture
def unsettled() -> Iterator[None]:
    """However many texts are asked, something is open."""
    with patch.object(Asking, "_is_settled", lambda *_: False):
        yield


def grown(study: Study, run: Path, texts: int | None, minutes: float = 0.0, workers: int = 1) -> Path:
    """The run after an audit of so many texts."""
    audit_study(study, run, engine=LocalEngine(workers), budget=Budget(texts, minutes))
    return run


@pytest.fixture(scope="module")
def of_50(study: Study, home: Path) -> Path:
    with patch("exegete.experiments.common.charts.draw_charts"):
        return grown(study, home / "of_50", 50)


@pytest.fixture(scope="module")
def direct(study: Study, home: Path) -> Path:
    """A run that was asked 100 texts at once."""
    with patch("exegete.experiments.common.charts.draw_charts"):
        return run_study(with_texts(study, 100), home / "direct", engine=LocalEngine(1))


@pytest.fixture(scope="module")
def of_100(study: Study, of_50: Path, home: Path) -> Path:
    """The same run after 50 more."""
    copy = Path(shutil.copytree(of_50, home / "of_100"))
    with patch("exegete.experiments.common.charts.draw_charts"), patch.object(Asking, "_is_settled", lambda *_: False):
        return grown(study, copy, 100)


@pytest.fixture
def larger(of_100: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_100, tmp_path / "larger"))


@pytest.fixture
def run(of_50: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_50, tmp_path / "run"))


def parts(run: Path) -> dict[str, tuple[int, bytes]]:
    """Every part of every stage: when it was written, and what it holds."""
    found = [path for path in run.glob("stages/*/**/*") if path.is_file() and path.name != "stage.json"]
    return {str(path.relative_to(run)): (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def same_tables(one: Path, other: Path) -> None:
    for name in (TABLE, TABLE.replace(".parquet", "_summary.parquet")):
        assert_frame_equal(pl.read_parquet(one / name), pl.read_parquet(other / name))


def asked_of(run: Path) -> int:
    """Different texts in the table of what grows."""
    return pl.read_parquet(run / TABLE).filter(pl.col("split") == "test")["example"].n_unique()


def long_enough(study: Study, texts: int | None) -> int:
    """Of so many texts in their keyed order those of four words or more."""
    return sum(len(e) > 3 for e in choose_texts(cached_task(study.tasks[0]).split("test"), texts))


def test_more_texts_train_nothing_and_compute_only_what_is_new(
    study: Study, run: Path, direct: Path, unsettled: None
) -> None:
    before, trainings = parts(run), list[str]()
    with noting(trainings):
        grown(study, run, 100)
    after = parts(run)
    assert not trainings
    assert {name: after[name] for name in before} == before
    new = {name.split("/")[1].split("-")[0] for name in after if name not in before}
    assert new == {"predict", "score", "experiment"}
    assert asked_texts(study_of(run)) == 100
    assert asked_of(run) == long_enough(study, 100)
    same_tables(run, direct)


def test_an_audit_goes_on_by_itself_until_it_has_asked_what_it_may(
    study: Study, tmp_path: Path, direct: Path, unsettled: None
) -> None:
    trainings = list[str]()
    with noting(trainings):
        same_tables(grown(study, tmp_path / "run", 100), direct)
    assert len(trainings) == 1


class Killed(BaseException):
    """Nobody catches it."""


def test_a_run_that_is_killed_between_steps_goes_on(
    study: Study, tmp_path: Path, direct: Path, unsettled: None
) -> None:
    real, looked = Asking.__call__, list[int]()

    def killed(self: Asking, study: Study, rows: Mapping[str, pl.DataFrame]) -> Study | None:
        looked.append(rows["mediation"].filter(pl.col("split") == "test")["example"].n_unique())
        if len(looked) == 2:
            raise Killed
        return real(self, study, rows)

    with patch.object(Asking, "__call__", killed), pytest.raises(Killed):
        grown(study, tmp_path / "run", 100)
    assert looked == [long_enough(study, 50), long_enough(study, 100)]
    assert not (tmp_path / "run" / "manifest.json").exists()
    before, trainings = parts(tmp_path / "run"), list[str]()
    with noting(trainings):
        grown(study, tmp_path / "run", 100)
    assert not trainings
    after = parts(tmp_path / "run")
    assert {name: after[name] for name in before} == before
    grew = {name.split("/")[1] for name in before if name.endswith("part-00002.parquet")}
    assert {name for name in set(after) - set(before) if name.split("/")[1] in grew} == set()  # the step was whole
    same_tables(tmp_path / "run", direct)


def test_a_smaller_number_later_keeps_what_is_there(study: Study, larger: Path, unsettled: None) -> None:
    before, table = parts(larger), (larger / TABLE).read_bytes()
    with patch("exegete.runs.pieces.run_cell", side_effect=AssertionError("a cell was run again")):
        grown(study, larger, 50)
    assert parts(larger) == before
    assert (larger / TABLE).read_bytes() == table
    run_study(study, larger, engine=LocalEngine(1))
    assert asked_texts(study_of(larger)) == 100


def test_how_many_texts_it_begins_with(study: Study) -> None:
    of_100 = with_texts(study, 100)
    for most, wanted in ((None, 100), (60, 60), (100, 100), (500, 100), (10, 50)):
        assert asked_texts(begin_study(of_100, Budget(most), silent)) == wanted
    assert asked_texts(begin_study(with_texts(study, 30), Budget(60), silent)) == 30
    assert begin_study(with_texts(study, None), Budget(60), silent) == with_texts(study, None)


def test_more_texts_than_the_split_has(study: Study, run: Path, unsettled: None) -> None:
    every = len(cached_task(study.tasks[0]).split("test"))
    assert 100 < every < 150
    grown(study, run, 10_000)
    assert asked_texts(study_of(run)) == every
    assert asked_of(run) == long_enough(study, None)
    before = parts(run)
    grown(study, run, 10_000)
    assert parts(run) == before


@pytest.mark.parametrize("changed", [{"draws": 2}, {"choosing": 13}, {"methods": ["attention"]}, {"tolerance": 0.05}])
def test_a_folder_is_still_that_of_one_study(study: Study, run: Path, changed: dict[str, Any]) -> None:
    other = study.model_copy(update={"experiments": (MEDIATION | changed,)})
    with pytest.raises(ExegeteError, match="another study"):
        run_study(other, run, engine=LocalEngine(1))
    beside = study.model_copy(update={"experiments": (MEDIATION, {"name": "permutation"})})
    with pytest.raises(ExegeteError, match="another study"):
        run_study(beside, run, engine=LocalEngine(1))


def test_what_is_asked_without_a_number_is_all(study: Study, run: Path) -> None:
    """Also where a number is said to be none."""
    for entry in (MEDIATION | {"texts": None}, {name: said for name, said in MEDIATION.items() if name != "texts"}):
        whole = study.model_copy(update={"experiments": (entry,)})
        run_study(whole, run, engine=LocalEngine(1))
        assert asked_of(run) == long_enough(study, None)
        run_study(study, run, engine=LocalEngine(1))
        assert asked_of(run) == long_enough(study, None)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_look_sees_the_texts_asked_so_far_whoever_asked_them(
    study: Study, tmp_path: Path, direct: Path, unsettled: None, workers: int
) -> None:
    real, looked = Asking.__call__, list[tuple[int | None, int, set[str]]]()

    def noted(self: Asking, study: Study, rows: Mapping[str, pl.DataFrame]) -> Study | None:
        own = rows["mediation"] if rows else pl.DataFrame({"split": [], "example": []})
        test = own.filter(pl.col("split") == "test")
        looked.append((asked_texts(study), test["example"].n_unique(), set(own.columns)))
        return real(self, study, rows)

    with patch.object(Asking, "__call__", noted):
        grown(study, tmp_path / "run", 100, workers=workers)
    assert [look[:2] for look in looked] == [(n, long_enough(study, n)) for n in (50, 100)]
    same_tables(tmp_path / "run", direct)


def test_it_goes_on_until_every_model_is_graded(study: Study) -> None:
    asking = Asking(Budget(100), load_criteria(), silent)
    settled, opened = grading_that("holds", "holds"), grading_that("holds", "cannot tell")
    assert settled.is_settled
    assert not opened.is_settled
    empty = {"mediation": pl.DataFrame()}
    for found, wanted in (({"a": settled, "b": settled}, None), ({"a": settled, "b": opened}, 100), ({}, 100)):
        with (
            patch("exegete.answers.budget.evidence_of", return_value=()),
            patch("exegete.answers.budget.gradings", return_value=found),
        ):
            larger = asking(study, empty)
        assert (None if larger is None else asked_texts(larger)) == wanted
    assert asking(study, {}) is None  # nothing that grows was asked


def test_all_models_are_asked_the_same_texts(study: Study, tmp_path: Path, unsettled: None) -> None:
    both = study.model_copy(update={"models": tuple(MODELS)})
    grown(both, tmp_path / "run", 100)
    rows = pl.read_parquet(tmp_path / "run" / TABLE).filter(pl.col("split") == "test")
    by_model = {name: set(own["example"]) for (name,), own in rows.group_by("model")}
    assert set(by_model) == set(MODELS)
    assert len(by_model[MODELS[0]]) == long_enough(study, 100)
    assert by_model[MODELS[0]] == by_model[MODELS[1]]


def test_the_time_ends_it(study: Study, run: Path, unsettled: None) -> None:
    grown(study, run, None, minutes=1e-6)
    assert asked_of(run) == long_enough(study, 50)


def test_the_next_step_must_end_in_time(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 texts in 30 seconds: 50 more would end after a minute."""
    now = [100.0]
    monkeypatch.setattr("exegete.answers.budget.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Asking, "_is_settled", lambda *_: False)
    asking = Asking(Budget(minutes=1.5), load_criteria(), silent, started=100.0)
    empty = {"mediation": pl.DataFrame()}
    now[0] += 10
    more = asking(study, empty)
    assert more is not None
    assert asked_texts(more) == 100
    now[0] += 60 * 1.5 * REST - 10 - 20 * 0.5 - 1e-3  # 20 texts are left, in half as much time as was taken by 50
    assert asking(more, empty) is None  # at more than a second each
    slow = Asking(Budget(minutes=1.5), load_criteria(), silent, started=now[0], last=(now[0] - 10, 50))
    assert asking_more(slow, more) is not None  # 50 texts in 10 seconds
    assert Asking(Budget(), load_criteria(), silent)(study, empty) is None  # neither texts nor time are given


def test_so_many_texts_are_asked_however_long_they_take(study: Study, run: Path, unsettled: None) -> None:
    """A slow machine gets its answer later, not a poorer one."""
    audit_study(study, run, engine=LocalEngine(1), budget=Budget(minutes=1e-6, at_least=100))
    assert asked_of(run) == long_enough(study, 100)


def test_a_quick_audit_does_not_count_its_training(
    study: Study, monkeypatch: pytest.MonkeyPatch, unsettled: None
) -> None:
    now = [100.0]
    monkeypatch.setattr("exegete.answers.budget.time.monotonic", lambda: now[0])
    for quick in (True, False):
        asking = Asking(Budget(minutes=1, quick=quick), load_criteria(), silent, started=0.0)
        asking.trained()
        assert (asking_more(asking, study) is not None) is quick


def asking_more(asking: Asking, study: Study) -> Study | None:
    return asking(study, {"mediation": pl.DataFrame()})


@pytest.mark.parametrize(("by", "which"), [("check", 0), ("run", -1)])
def test_a_damaged_part_of_what_grew_is_computed_again(
    study: Study, larger: Path, direct: Path, unsettled: None, monkeypatch: pytest.MonkeyPatch, by: str, which: int
) -> None:
    run = larger
    (stage,) = {path.parent for path in run.glob("stages/experiment-*/part-00002.parquet")}
    flip(sorted(stage.glob("part-*.parquet"))[which])
    if by == "check":
        monkeypatch.setattr(sys, "argv", ["exegete", "check", str(run)])
        with pytest.raises(SystemExit) as found:
            main()
        assert found.value.code == 1
        monkeypatch.setattr(sys, "argv", ["exegete", "check", str(run), "--repair", "--quiet"])
        with pytest.raises(SystemExit) as repaired:
            main()
        assert not repaired.value.code
    else:
        heard = Heard()
        audit_study(study, run, engine=LocalEngine(1), budget=Budget(100), progress=heard)
        assert any("is damaged, and is computed again" in sentence for sentence in heard.sentences)
    same_tables(run, direct)


def test_a_folder_that_an_audit_made_can_be_run(
    study: Study, tmp_path: Path, direct: Path, unsettled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    entry = "".join(f"{name} = {said!r}\n" for name, said in MEDIATION.items())
    training = f"metric = 'accuracy'\nepochs = {study.training.epochs}\nlr = {study.training.lr}\n"
    file.write_text(
        f"tasks = ['{study.tasks[0]}']\nmodels = ['{MODELS[0]}']\n[training]\n{training}[[experiments]]\n{entry}"
    )
    out = str(tmp_path / "run")
    for words in (
        ["audit", str(file), "--texts", "100", "--out", out, "--quiet", "--workers", "1"],
        ["run", str(file), "--out", out, "--quiet", "--workers", "1"],
    ):
        monkeypatch.setattr(sys, "argv", ["exegete", *words])
        with pytest.raises(SystemExit) as done:
            main()
        assert not done.value.code
        assert asked_texts(study_of(Path(out))) == 100
        same_tables(Path(out), direct)


def test_texts_come_in_steps_that_stay() -> None:
    """Whoever asks more has the same first steps; each of all texts is asked once."""
    examples = texts(260)
    order = keyed_order(column_of(examples, "id")).tolist()
    for wanted in (30, 50, 75, 100, 110, 150, 260, None, 900):
        portions = [[e.id for e in some] for some in in_steps(examples, wanted)]
        ends = steps(min(wanted or 260, 260))
        assert [len(some) for some in portions] == [b - a for a, b in zip([0, *ends], ends, strict=False)]
        for some, (start, end) in zip(portions, zip([0, *ends], ends, strict=False), strict=True):
            assert some == sorted(examples[i].id for i in order[start:end])
        assert sorted(i for some in portions for i in some) == sorted(e.id for e in choose_texts(examples, wanted))
    for n in range(1, 1500):
        assert look_points(n)[-1] == n
        assert set(look_points(n)[:-1]) <= set(look_points(n + 1))
        assert set(steps(n)) <= set(look_points(n))


def test_a_quick_audit_says_how_large_a_file_is_before_it_reads_it(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = reviews(tmp_path / "large.csv", 200)
    large = study.model_copy(update={"tasks": (f"file:{path}:text=review,label=sentiment",)})
    monkeypatch.setenv("EXEGETE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("exegete.tasks.spool.LARGE", 1)
    heard, labels = Heard(), list[str]()

    def listen(self: Heard, label: str, done: int, total: int) -> None:
        labels.append(label)

    monkeypatch.setattr(Heard, "__call__", listen)
    begin_study(large, Budget(quick=True), heard)
    (sentence,) = heard.sentences
    assert sentence.startswith("reading large.csv (0 MB of text) takes about ")
    assert "reading, MB" in labels
