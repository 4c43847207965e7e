"""Servers that tests share: two small models, one that pools and one with layers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wings.explorer.serving import Running, running, small_models, small_run


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_models(tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="session")
def server(folders: tuple[Path, Path]) -> Iterator[Running]:
    with running([str(folder) for folder in folders]) as found:
        yield found


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("run"))
