"""The experiments that need more models, in one small study: trained once each, told in a report, and in a terminal."""

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from exegete.answers.pages.build import write_run_report
from exegete.experiments.common.section import QuestionResult, Sections
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import read_manifest, run_study
from exegete.runs.study import Study
from tests.studied import noting, reviews, small_study

pytestmark = pytest.mark.slow
EXPERIMENTS: list[dict[str, Any]] = [
    {"name": "seed_stability", "seeds": [0, 1]},
    {"name": "diagnostic", "encoder": "average:hidden=8", "adversary_lam": 0.01, "epochs": 2, "patience": 2},
    {"name": "reliance", "lams": [0.01], "epochs": 2, "patience": 2, "tolerance": 1.0},
]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Study:
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 90)
    return small_study(
        "beside", file, ["bilstm:size=8,hidden=8", "average:size=8,hidden=8,projection=sparsemax"], *EXPERIMENTS
    )


@pytest.fixture(scope="module")
def trainings() -> list[str]:
    return []


@pytest.fixture(scope="module")
def run(asking: Study, trainings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    with noting(trainings):
        return run_study(asking, tmp_path_factory.mktemp("runs") / "run", engine=LocalEngine(1))


def test_every_model_is_trained_once(run: Path, trainings: list[str]) -> None:
    """Of four cells: itself, uniform, adversary (of two experiments), and the words' imposed and imposed_adversary.

    The model of single words with own and with uniform weights depends on the seed alone: one for both base models.
    """
    assert len(trainings) == len(set(trainings)) == 4 * 5 + 2 * 2
    assert all(set(cell["experiments"]) == {e["name"] for e in EXPERIMENTS} for cell in read_manifest(run)["cells"])


def test_every_pair_of_seeds_is_the_same_from_both_sides(run: Path) -> None:
    rows = pl.read_parquet(run / "tables" / "seed_stability.parquet")
    assert set(rows.select("seed", "other").unique().iter_rows()) == {(0, 1), (1, 0)}
    here, there = (rows.filter(seed=seed).sort("model", "example") for seed in (0, 1))
    for name in ("jsd", "tvd"):
        assert here[name].fill_null(-1).to_list() == pytest.approx(there[name].fill_null(-1).to_list(), abs=1e-9)


def test_weights_are_imposed_in_the_rows(run: Path) -> None:
    weights = pl.read_csv(run / "tables" / "diagnostic_weights.csv")
    far = {(r["model"], r["weights"]): r["jsd"] for r in weights.to_dicts()}
    for model in weights["model"].unique():
        assert far[model, "imposed"] == pytest.approx(0, abs=1e-6)
        assert far[model, "imposed_adversary"] == pytest.approx(far[model, "adversary"], abs=1e-6)


def test_four_trained_models_are_two_points(run: Path) -> None:
    points = pl.read_parquet(run / "tables" / "reliance_summary.parquet")
    assert points.height == 4
    assert points["lam"].to_list() == [0.01] * 4
    rows = pl.read_parquet(run / "tables" / "reliance.parquet").filter(split="test", companion="uniform")
    lost = rows.group_by("model", "seed").agg(drop=(pl.col("correct") - pl.col("companion_correct")).mean())
    both = points.join(lost, on=["model", "seed"], suffix="_slow")
    assert both["drop"].to_list() == pytest.approx(both["drop_slow"].to_list())
    assert set(pl.read_csv(run / "tables" / "reliance_relation.csv")["n"]) == {2}


def test_the_report_tells_all_three(run: Path, asking: Study, tmp_path: Path) -> None:
    page = write_run_report(run, tmp_path / "page.html").read_text()
    assert "Do other seeds attend to the same words?" in page
    assert "Do the weights help a model of single words?" in page
    assert "Is a model that needs attention harder to fake?" in page
    for name, built in asking.built_experiments().items():
        told: Sections = import_module(f"exegete.experiments.{name}.section")
        table = told.headline(QuestionResult(run, name, built))
        assert table.cells()
        assert all(len(row) == len(table.shown) for row in table.cells())
