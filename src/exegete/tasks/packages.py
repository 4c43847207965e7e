"""Data in installed packages: found without importing (running) any of their code."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


def package_folder(package: str) -> Path | None:
    """The folder of an installed top-level package, or None; finding a top-level package does not import it."""
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def origin(distribution: str) -> str:
    """Name and version, as they go into a task's origin."""
    return f"{distribution} {version(distribution)}"
