"""Servers that tests share: two small models, one that pools and one with layers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from exegete.training.checkpoint import save_checkpoint
from tests.explanations.explained_model import checkpoint, saved
from tests.explorer.serving import Running, running

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
