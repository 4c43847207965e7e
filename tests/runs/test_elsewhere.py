"""Every experiment on a second device: nothing mixes it with the CPU, and rows are those of the CPU.

`tests.elsewhere` is that device. A cell is trained, scored and asked there from end to end, companions included. What
is read from disk (scores, predictions) and what is written (rows) is on the CPU; what a model says is where the model
is.
"""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from exegete.experiments.catalogue import EXPERIMENTS
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.runs.study import Study, check_study
from exegete.runs.tables import Tabulated
from exegete.training.settings import TrainingSettings
from tests.elsewhere import DEVICE, somewhere_else
from tests.studied import reviews

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn", "untabulated")]

WORDS, PLANTED = "words", "planted"  # files that the test writes
PAIRS = "stories:facts=1,train=24,dev=8,test=8,sentences=3"
SENTENCES = "toy_translation:train=24,dev=8,test=6"
POOLING = "bilstm:size=6,hidden=4,scale=1"
LAYERED = "transformer:size=8,hidden=8,inner=8,layers=2,heads=2,scale=1"
PAIR, TRANSLATOR = "pair:hidden=4,size=4", "translator:hidden=6,size=6"
CHEAP = ["attention", "gradient", "leave_one_out"]
TEXTS = 4
FAST = TrainingSettings(epochs=1, batch=32, lr=1e-2, metric="loss")
MOVED = {"ms"}  # what is a time

ASKED: list[tuple[str, str, dict[str, Any]]] = [
    (WORDS, POOLING, {"name": "mediation", "draws": 2}),
    (WORDS, LAYERED, {"name": "mediation", "draws": 2}),
    (PAIRS, PAIR, {"name": "mediation", "draws": 2}),
    (WORDS, POOLING, {"name": "agreement", "against": CHEAP, "draws": 2}),
    (WORDS, POOLING, {"name": "faithfulness", "methods": [*CHEAP, "random"]}),
    (PAIRS, PAIR, {"name": "faithfulness", "methods": [*CHEAP, "random"]}),
    (PAIRS, PAIR, {"name": "plausibility", "methods": CHEAP, "draws": 2}),
    (PLANTED, POOLING, {"name": "known_answer", "methods": CHEAP}),
    (PAIRS, PAIR, {"name": "supporting_facts", "methods": CHEAP}),
    (WORDS, POOLING, {"name": "permutation", "draws": 3}),
    (WORDS, LAYERED, {"name": "permutation", "draws": 3}),
    (SENTENCES, TRANSLATOR, {"name": "permutation", "draws": 3}),
    (WORDS, POOLING, {"name": "importance_sets"}),
    (WORDS, LAYERED, {"name": "importance_sets"}),
    (WORDS, POOLING, {"name": "adversary_search", "steps": 3}),
    (WORDS, POOLING, {"name": "necessity", "trained": ["uniform"], "inferred": ["permute"]}),
    (SENTENCES, TRANSLATOR, {"name": "necessity", "trained": ["uniform"], "inferred": ["permute"]}),
    (WORDS, POOLING, {"name": "seed_stability", "draws": 2}),
    (WORDS, POOLING, {"name": "diagnostic"}),
    (WORDS, POOLING, {"name": "adversary_training", "draws": 2, "lams": [0.01]}),
    (WORDS, POOLING, {"name": "multiverse", "draws": 2}),
    (WORDS, POOLING, {"name": "sanity", "methods": CHEAP, "draws": 1}),
    (WORDS, LAYERED, {"name": "sanity", "methods": CHEAP, "draws": 1}),
    (WORDS, POOLING, {"name": "reliance"}),
    (WORDS, POOLING, {"name": "dispersion"}),
    (WORDS, LAYERED, {"name": "dispersion"}),
    (WORDS, POOLING, {"name": "single_weight"}),
    (WORDS, POOLING, {"name": "decision_flips"}),
    (PLANTED, POOLING, {"name": "deception", "methods": CHEAP, "lams": [0.1], "epochs": 1}),
    (WORDS, POOLING, {"name": "gating"}),
    (WORDS, LAYERED, {"name": "layers"}),
    (WORDS, LAYERED, {"name": "heads", "draws": 1}),
    (WORDS, LAYERED, {"name": "knockout"}),
    (WORDS, LAYERED, {"name": "readings", "draws": 1}),
    (SENTENCES, TRANSLATOR, {"name": "alignment", "methods": ["attention", "gradient"]}),
]  # fmt: skip


@pytest.fixture
def untabulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made of rows on disk, by whoever runs the study."""
    monkeypatch.setattr("exegete.runs.run.write_tables", lambda *_: Tabulated({}, []))


def asked_of(task: str, model: str, entry: dict[str, Any], folder: Path) -> Study:
    if task in (WORDS, PLANTED):
        more = ",planted=token" if task == PLANTED else ""
        task = f"file:{reviews(folder / 'reviews.csv', 60)}:text=review,label=sentiment,tokenizer=whitespace{more}"
    entry = entry if entry["name"] in ("alignment", "sanity") else {"texts": TEXTS, **entry}
    return check_study(Study(name="small", tasks=(task,), models=(model,), training=FAST, experiments=(entry,)))


def rows_of(run: Path) -> pl.DataFrame:
    """What the experiment found, in one order."""
    stages = sorted(
        run.glob("stages/experiment-*/stage.json"), key=lambda path: str(json.loads(path.read_text())["split"])
    )
    parts = [path for stage in stages for path in sorted(stage.parent.glob("part-*.parquet"))]
    found = pl.concat([pl.read_parquet(path) for path in parts])
    return found.drop([name for name in MOVED if name in found.columns])


def test_no_experiment_is_left_out() -> None:
    assert {entry["name"] for _, _, entry in ASKED} == set(EXPERIMENTS)


@pytest.mark.parametrize(("task", "model", "entry"), ASKED, ids=lambda x: x["name"] if isinstance(x, dict) else x[:8])
def test_experiments(task: str, model: str, entry: dict[str, Any], tmp_path: Path) -> None:
    study = asked_of(task, model, entry, tmp_path)
    here = rows_of(run_study(study, tmp_path / "here", engine=LocalEngine(1)))
    with somewhere_else(), patch("exegete.models.build.in_use", lambda: DEVICE):
        there = rows_of(run_study(study, tmp_path / "there", engine=LocalEngine(1)))
    assert here.height
    assert_frame_equal(there, here, abs_tol=1e-3, rel_tol=1e-3)
    assert torch.tensor(0).device.type == "cpu"
