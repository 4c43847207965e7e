"""The how-to page's intervention and experiment, as they stand there, in a small study on a made-up file."""

import json
from pathlib import Path

import polars as pl
import pytest
import torch

from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import load_checkpoint
from exegete.training.evaluation import predict
from tests.docs.plugin_runs import run_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the page's study on 60 short texts."""
    return run_of("sharpen", tmp_path_factory.mktemp("own_experiment"))


def test_the_companion_is_a_training_of_its_own(run: Path) -> None:
    stages = [json.loads(path.read_text()) for path in run.glob("stages/train-*/stage.json")]
    told = [stage["recipe"] for stage in stages if "recipe" in stage]
    assert len(stages) == 2
    assert [recipe for recipe in told if "sharpen:power=3" in recipe] == told
    assert len(told) == 1


def test_its_rows_are_what_both_models_get_right(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    task = load_task("file:reviews.csv:text=review,label=sentiment")
    [own] = [p for p in run.glob("stages/train-*") if "recipe" not in json.loads((p / "stage.json").read_text())]
    [other] = [p for p in run.glob("stages/train-*") if p != own]
    texts = task.split("test")
    gold = torch.tensor([e.label for e in texts])

    def cubed(site):  # type: ignore[no-untyped-def]
        powers = site.weights**3
        return powers / powers.sum(-1, keepdim=True)

    before = predict(load_checkpoint(own / "checkpoint").classifier, texts).argmax(-1) == gold
    after = predict(load_checkpoint(other / "checkpoint").classifier, texts, cubed).argmax(-1) == gold
    expected = dict(zip([e.id for e in texts], (after.double() - before.double()).tolist(), strict=True))
    rows = pl.read_parquet(run / "tables" / "sharper.parquet")
    assert dict(rows.select("example", "value").iter_rows()) == expected


def test_our_experiments_know_the_new_intervention(run: Path) -> None:
    conditions = pl.read_parquet(run / "tables" / "necessity_summary.parquet")["condition"].to_list()
    assert conditions == ["uniform", "sharpen:power=3"]
