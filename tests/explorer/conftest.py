"""Servers that tests share: two small models, one that pools and one with layers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from exegete.report.build import write_report
from exegete.runs.engine.local import LocalEngine
from exegete.runs.run import run_study
from exegete.training.checkpoint import save_checkpoint
from tests.explanations.explained_model import checkpoint, saved
from tests.explorer.serving import Running, running
from tests.studied import reviews, small_study

LAYERS = "transformer:size=7,hidden=6,heads=2,inner=10,scale=1"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A BiLSTM and a transformer of two layers with two heads."""
    at = tmp_path_factory.mktemp("explored")
    save_checkpoint(at / "layers", replace(checkpoint(LAYERS), key="k"))
    return saved(at / "pools"), at / "layers"


@pytest.fixture(scope="session")
def server(folders: tuple[Path, Path]) -> Iterator[Running]:
    with running([str(folder) for folder in folders]) as found:
        yield found


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two seeds of a model, with scores, adversaries and a report."""
    at = tmp_path_factory.mktemp("run")
    study = small_study(
        "explored",
        reviews(at / "reviews.csv"),
        ["bilstm:size=8,hidden=8"],
        {"name": "agreement", "ks": ["1"], "topk": [], "draws": 2},
        {"name": "adversary_search", "references": False, "steps": 5, "count": 2, "texts": 5},
    )
    with patch("exegete.experiments.common.drawn.draw"):  # figures take longer than all else
        found = run_study(study, at / "run", engine=LocalEngine(1))
    write_report(found)
    return found
