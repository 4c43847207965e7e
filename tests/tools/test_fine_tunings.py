"""Each fine-tuning is a line: its answer, its accuracy, and the two tests that decide."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import exegete
from tools import fine_tunings


def test_a_line_has_what_decided(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def audit(model: str, task: str, *, quick: bool, seeds: tuple[int, ...], out: Path) -> Any:
        asked.append((model, task, quick, seeds))
        (out / "tables").mkdir(parents=True)
        pl.DataFrame({"seed": seeds, "test_accuracy": [0.8 + seeds[0] / 100]}).write_csv(out / "tables/models.csv")
        tests = {"name": ["used", "ranks", "reads"], "verdict": ["holds", "fails", "holds"]}
        numbers = {"statistic": [0.1, 0.48, 0.31], "low": [0.0, 0.4, 0.2], "high": [0.2, 0.5, 0.4], "n": [9, 80, 70]}
        return SimpleNamespace(answer="No (11 of 12)\nand why", scorecard=pl.DataFrame(tests | numbers))

    monkeypatch.setattr(exegete, "audit", audit)
    lines = [fine_tunings.audited(seed, tmp_path) for seed in (0, 1)]
    assert asked == [(fine_tunings.MODEL, fine_tunings.TASK, True, (seed,)) for seed in (0, 1)]
    assert lines[1] == {
        "seed": 1, "answer": "No (11 of 12)", "test_accuracy": 0.81,
        "gamma_verdict": "fails", "gamma": 0.48, "gamma_low": 0.4, "gamma_high": 0.5, "gamma_texts": 80,
        "m_verdict": "holds", "m": 0.31, "m_low": 0.2, "m_high": 0.4, "m_texts": 70,
    }  # fmt: skip
