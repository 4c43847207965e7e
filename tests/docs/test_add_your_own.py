"""The how-to pages' intervention and measure, as they stand there, each one file from outside."""

from pathlib import Path

import polars as pl
import pytest
import torch

from exegete.plugins import INTERVENTIONS, MEASURES, load_checkpoint, load_task
from tests.docs.plugin_runs import run_of

TASK = "file:reviews.csv:text=review,label=sentiment"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of("mix", tmp_path_factory.mktemp("own_intervention"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of("same_first", tmp_path_factory.mktemp("own_measure"))


def test_our_experiment_asks_with_the_new_intervention(mixed: Path) -> None:
    summary = pl.read_parquet(mixed / "tables" / "necessity_summary.parquet")
    assert summary["condition"].to_list() == ["mix", "mix:share=1", "uniform"]
    rows = pl.read_parquet(mixed / "tables" / "necessity.parquet").sort("example")
    whole, even = (rows.filter(pl.col("condition") == name)["value"].to_list() for name in ("mix:share=1", "uniform"))
    assert whole == even  # wholly mixed is uniform


def test_the_new_intervention_is_its_formula(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mixed.parent)
    [folder] = mixed.glob("stages/train-*/checkpoint")
    model, texts = load_checkpoint(folder).classifier, load_task(TASK).split("test")
    mix = INTERVENTIONS.make("mix:share=0.25")
    together = model.collate(texts)
    with torch.no_grad():
        own, found = (model.trace(together, intervene=i).attention["attention"] for i in (None, mix))
        for row, text in enumerate(texts):
            n = len(text.words)
            expected = [0.75 * own[row, 0, 0, key].item() + 0.25 / n for key in range(n)]
            assert found[row, 0, 0, :n].tolist() == pytest.approx(expected, abs=1e-6)
            assert not found[row, 0, 0, n:].any()
            alone = model.trace(model.collate([text]), intervene=mix).attention["attention"]
            assert alone[0, 0, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_new_measure_is_asked(measured: Path) -> None:
    parts = [pl.read_parquet(path) for path in measured.glob("stages/score-*/part-00000.parquet")]
    attention, other = (dict(part.select("example", "scores").iter_rows()) for part in parts)
    rows = pl.read_parquet(measured / "tables" / "same_first.parquet")
    assert rows.height > 3
    for example, value, chance in rows.select("example", "value", "chance").iter_rows():
        first, second = (max(range(len(s)), key=s.__getitem__) for s in (attention[example], other[example]))
        assert value == float(first == second)
        assert chance == 1 / len(attention[example])


def test_the_new_measure_has_a_name(measured: Path) -> None:
    same_first = MEASURES["same_first"].load()
    nan = float("nan")
    lists = torch.tensor([[1.0, 3.0, nan], [2.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.5, nan], [0.0, 1.0, 2.0]])
    assert same_first(*lists).tolist() == [1.0, 0.0]
