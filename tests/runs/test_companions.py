"""Companions: trained once, found again, resumed, and the same as a study's own models where nothing differs."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from exegete.base.catalogue import Entry
from exegete.base.errors import UsageError
from exegete.base.files import read_json
from exegete.experiments.catalogue import EXPERIMENTS
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.side_by_side import companion_sees, see_texts
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import read_manifest, run_study
from exegete.runs.study import Study
from exegete.training.checkpoint import load_checkpoint, save_state
from exegete.training.fit import Fit, State
from exegete.training.recipe import Recipe
from exegete.training.settings import TrainingSettings
from tests.studied import noting, reviews, small_study

WORDS = "average:size=8,hidden=8"
RECIPES = {
    "again": Recipe(),
    "seed": Recipe(seed=1),
    "uniform": Recipe(attention="uniform"),
    "imposed": Recipe(model=WORDS, imposed="base"),
    "flat": Recipe(model=WORDS, imposed="uniform"),
    "faked": Recipe(objective="adversary:lam=0.05", warm=True, moves="attention", epochs=1),
}
pytestmark = pytest.mark.usefixtures("undrawn", "known")


@dataclass(frozen=True)
class Beside:
    """A row per text and companion: the first weights and the probability of class 0 of both."""

    wanted: tuple[str, ...] = tuple(RECIPES)
    texts: int | None = None
    importances: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        assert model.startswith("bilstm")
        return {name: Recipe(seed=1 - seed) if name == "seed" else RECIPES[name] for name in self.wanted}

    def rows(self, subject: Subject) -> pl.DataFrame:
        base = see_texts(subject.model, subject.examples)
        found = {"base": base} | {
            name: companion_sees(companion, subject.examples) for name, companion in subject.companions.items()
        }
        parts = [
            pl.DataFrame(
                {
                    "example": [e.id for e in subject.examples],
                    "n": [len(e) for e in subject.examples],
                    "companion": name,
                    "first": other.key_weights[:, 0].tolist(),
                    "p": other.probabilities[:, 0].tolist(),
                }
            )
            for name, other in found.items()
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by("companion", maintain_order=True).agg(pl.col("p").mean())

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        return {}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        return {}


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with patch.dict(EXPERIMENTS._own, {"beside": Entry(Beside, "what do companions do?")}):
        yield


@pytest.fixture(scope="module")
def asking(known: None, tmp_path_factory: pytest.TempPathFactory) -> Study:
    file = reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 36)
    return small_study("beside", file, ["bilstm:size=8,hidden=8"], {"name": "beside"})


@pytest.fixture(scope="module")
def trainings() -> list[str]:
    return []


@pytest.fixture(scope="module")
def run(asking: Study, trainings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study; every training is noted."""
    with noting(trainings):
        return run_study(asking, tmp_path_factory.mktemp("runs") / "run", engine=LocalEngine(1))


def here(study: Study, out: Path) -> Path:
    return run_study(study, out, engine=LocalEngine(1))


def table(run: Path) -> pl.DataFrame:
    return pl.read_parquet(run / "tables" / "beside.parquet")


def column(run: Path, companion: str, name: str, seed: int = 0) -> list[float]:
    return table(run).filter(companion=companion, seed=seed).sort("example")[name].to_list()


def trained_as(run: Path, recipe: Recipe) -> list[Path]:
    """The trainings of one recipe."""
    stages = {path.parent: read_json(path, "stage") for path in run.glob("stages/train-*/stage.json")}
    return sorted(folder for folder, facts in stages.items() if facts.get("recipe") == repr(recipe))


def test_every_training_is_done_once(run: Path, trainings: list[str]) -> None:
    assert set(Counter(trainings).values()) == {1}
    # Two cells; of each its own model, uniform, imposed, flat and faked. `again` and `seed` are the cells' own models.
    assert len(trainings) == 2 * 5
    assert len(list(run.glob("stages/train-*"))) == 2 * 5


def test_plain_companions_are_the_studys_own_models(run: Path) -> None:
    assert trained_as(run, Recipe()) == []
    for seed in (0, 1):
        assert column(run, "again", "p", seed) == column(run, "base", "p", seed)
        assert column(run, "seed", "p", seed) == column(run, "base", "p", 1 - seed)
    assert column(run, "base", "p", 0) != column(run, "base", "p", 1)


def test_what_rewrites_attention_in_training_rewrites_it_ever_after(run: Path) -> None:
    flat = [1 / n for n in column(run, "base", "n")]
    assert column(run, "uniform", "first") == pytest.approx(flat, abs=1e-6)
    assert column(run, "flat", "first") == pytest.approx(flat, abs=1e-6)  # imposed from the companion before it
    assert column(run, "imposed", "first") == pytest.approx(column(run, "base", "first"), abs=1e-6)
    assert column(run, "base", "first") != pytest.approx(flat, abs=1e-3)
    assert column(run, "imposed", "p") != pytest.approx(column(run, "base", "p"), abs=1e-3)  # another model


def test_the_metrics_of_a_companion_are_those_under_its_own_attention(run: Path) -> None:
    """Its checkpoint says what it scores with its intervention, on the same texts as the rows."""
    (folder,) = [f for f in trained_as(run, RECIPES["uniform"]) if read_json(f / "stage.json", "stage")["seed"] == 0]
    said = load_checkpoint(folder / "checkpoint").metrics["test"]["accuracy"]
    predicted = {row["example"]: row["p"] > 0.5 for row in table(run).filter(companion="uniform", seed=0).to_dicts()}
    stage = next(run.glob("stages/predict-*"))
    texts = pl.concat([pl.read_parquet(path) for path in stage.glob("part-*.parquet")])
    labels = read_manifest(run)["cells"][0]["data"]["labels"]
    right = [predicted[e] == (gold == labels[0]) for e, gold in texts.select("example", "gold").iter_rows()]
    assert said == pytest.approx(sum(right) / len(right))


def test_a_warm_start_moves_attention_alone(run: Path, asking: Study) -> None:
    (folder,) = [f for f in trained_as(run, RECIPES["faked"]) if read_json(f / "stage.json", "stage")["seed"] == 0]
    other = load_checkpoint(folder / "checkpoint")
    cell = read_manifest(run)["cells"][0]
    base = load_checkpoint(run / "stages" / f"train-{cell['training']}" / "checkpoint")
    assert other.training["metric"] == "loss"
    assert other.training["epochs"] == 1
    ours, theirs = base.model.state_dict(), other.model.state_dict()
    moved = {name for name in ours if not torch.equal(ours[name], theirs[name])}
    assert moved
    assert all(name.startswith("scorer") for name in moved)


def test_all_is_found_again(asking: Study, run: Path) -> None:
    before = table(run)
    for folder in run.glob("stages/experiment-*"):
        shutil.rmtree(folder)  # the rows must be made again, from companions that are there
    with patch("exegete.runs.training.train_in_folder", side_effect=AssertionError):
        here(asking, run)
    assert_frame_equal(table(run), before)


class StoppedError(Exception):
    """Stands for a kill."""


def test_an_interrupted_companion_goes_on(asking: Study, run: Path, tmp_path: Path) -> None:
    only = asking.model_copy(update={"seeds": (0,), "experiments": ({"name": "beside", "wanted": ["uniform"]},)})
    resumed: list[int] = []
    saved: list[int] = []

    def stops(folder: Path, state: State, key: str) -> None:
        save_state(folder, state, key)
        saved.append(state.epoch)
        if len(saved) == 3:  # two epochs of the base, one of the companion
            raise StoppedError

    real = Fit.resume

    def noted(self: Fit, state: State) -> None:
        resumed.append(state.epoch)
        real(self, state)

    with patch("exegete.training.train.save_state", stops), pytest.raises(StoppedError):
        here(only, tmp_path / "cut")
    assert saved == [1, 2, 1]
    with patch.object(Fit, "resume", noted):
        here(only, tmp_path / "cut")
    assert resumed == [1]
    assert column(tmp_path / "cut", "uniform", "p") == column(run, "uniform", "p")


def test_another_companion_makes_rows_stale(asking: Study, tmp_path: Path) -> None:
    """The same experiment with the same settings, but a companion that was trained otherwise."""
    only = asking.model_copy(update={"seeds": (0,), "experiments": ({"name": "beside", "wanted": ["uniform"]},)})
    run = here(only, tmp_path / "run")
    first = column(run, "uniform", "p")
    with patch.dict(RECIPES, uniform=Recipe(attention="uniform", seed=5)):
        here(only, run)
    assert len(list(run.glob("stages/experiment-*"))) == 2
    assert column(run, "uniform", "p") != first


def test_a_trained_model_is_not_asked_and_told_why(asking: Study, run: Path, tmp_path: Path) -> None:
    folder = run / "stages" / f"train-{read_manifest(run)['cells'][0]['training']}" / "checkpoint"
    ready = shutil.copytree(folder, tmp_path / "ready")
    agreement = {"name": "agreement", "ks": [], "topk": [], "against": ["attention", "gradient"]}
    study = asking.model_copy(
        update={"models": (str(ready),), "seeds": (0,), "experiments": (agreement, {"name": "beside"})}
    )
    (cell,) = read_manifest(here(study, tmp_path / "run"))["cells"]
    assert list(cell["experiments"]) == ["agreement"]
    assert f"beside was not asked: it needs more models of the same kind, and …/{ready.name} is one" in cell["notes"][0]


def test_imposing_what_is_not_there_is_one_sentence(asking: Study, tmp_path: Path) -> None:
    study = asking.model_copy(update={"seeds": (0,), "experiments": ({"name": "beside", "wanted": ["flat"]},)})
    with pytest.raises(UsageError, match="imposes the attention of 'uniform', which is not trained before it"):
        here(study, tmp_path / "run")


def test_what_a_recipe_changes() -> None:
    given = TrainingSettings(epochs=5, patience=2, metric="auc")
    assert Recipe().plain
    assert Recipe(seed=3, model="average", epochs=2).plain
    for other in ({"attention": "uniform"}, {"imposed": "base"}, {"objective": "x"}, {"warm": True}):
        assert not Recipe(**other).plain
    assert not Recipe(moves="attention").plain
    assert Recipe(seed=3).settings(given) == given
    changed = Recipe(objective="adversary:lam=1", epochs=9, patience=4).settings(given)
    assert (changed.epochs, changed.patience, changed.metric, changed.lr) == (9, 4, "loss", given.lr)
