"""A run's stages written by hand, small enough to know every number of them; and tests of an audit."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from exegete.answers.scorecard import Audit
from exegete.report.section import Verdict

CONTENT = {"data": "d", "weights": "w", "model": "m", "split": "test"}
TASK, MODEL = "sst", "bilstm"
WORDS = [["a", "b", "c", "d", "e", "f"], ["<script>", "x", "y", "z", "u", "v"], ["one", "two"]]
ATTENTION = [[0.1, 0.2, 0.3, 0.05, 0.25, 0.1], [0.5, 0.2, 0.15, 0.1, 0.04, 0.01], [0.5, 0.5]]
LRP = [[-1.0, 2.0, 3.0, -2.6, 2.5, 1.5], [0.1, -0.2, 0.3, 0.4, 0.5, -0.6], [1.0, 2.0]]


def stage(run: Path, name: str, frame: pl.DataFrame | None = None, **facts: Any) -> None:
    """A finished stage with one part."""
    folder = run / "stages" / name
    folder.mkdir(parents=True)
    if frame is not None:
        frame.write_parquet(folder / "part-00000.parquet")
    (folder / "stage.json").write_text(json.dumps(CONTENT | facts))


def scored_run(run: Path) -> list[dict[str, Any]]:
    """Predictions and the scores of attention and LRP; returns the cells."""
    ids = [7, 8, 9]
    texts = {"example": ids, "gold": ["1", "0", "1"], "predicted": ["1", "1", "1"], "words": WORDS}
    odds = [[0.25, 0.75], [0.1, 0.9], [0.5, 0.5]]
    stage(run, "predict-1", pl.DataFrame(texts | {"probabilities": odds, "n": [len(w) for w in WORDS]}))
    stage(run, "predict-0", pl.DataFrame({"example": [1]}), data="other")
    for name, values, signed in (("score-a", ATTENTION, False), ("score-l", LRP, True)):
        stage(run, name, pl.DataFrame({"example": ids, "scores": values, "signed": [signed] * 3}))
    stage(run, "experiment-1", scores={"attention": "score-a", "lrp": "score-l"})
    return [{"task": TASK, "model": MODEL, "seed": 0, "experiments": {"faithfulness": {"test": "experiment-1"}}}]


def asked(name: str = "faithful", **changes: Any) -> Verdict:
    """A test of attention that fails, unless changed."""
    given: dict[str, Any] = {
        "name": name, "task": TASK, "model": MODEL, "question": "Is it?", "statistic": -0.2, "n": 120,
        "interval": (-0.25, -0.15), "level": 0.99, "chance": -0.4, "criterion": "it is at most 0.05 below the best",
        "verdict": "fails", "about": "this checkpoint", "paper": "Jain & Wallace 2019", "against": "lrp",
        "threshold": -0.05,
    }  # fmt: skip
    return Verdict(**(given | changes))


def audit(*tests: Verdict, **changes: Any) -> Audit:
    """An audit of these tests."""
    given: dict[str, Any] = {"answer": "No.\n\nMore.", "tests": tests, "criteria_version": 4}
    return Audit(**(given | changes))
