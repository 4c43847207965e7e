"""The façade for plugins: every name is there, nothing heavy is imported for it, and our own pages use nothing else."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest

from exegete import plugins
from tests.docs.pages import ROOT, blocks


def test_every_name_is_there() -> None:
    assert [name for name in plugins.__all__ if getattr(plugins, name) is None] == []


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = plugins.no_such_name  # type: ignore[attr-defined]


def test_what_stays_comes_first_and_names_no_wing() -> None:
    assert {"IMPORTANCES", "Plugin"} < set(plugins.STAYING) < set(plugins.__all__)
    assert not [module for module, _ in plugins._HOME.values() if module.startswith("exegete.wings")]


def test_it_is_light() -> None:
    code = "import sys, exegete.plugins; sys.exit('torch' in sys.modules or 'polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _code() -> Iterator[tuple[str, str]]:
    yield from ((block.where, block.text) for block in blocks("python"))
    yield from ((path.name, path.read_text(encoding="utf8")) for path in (ROOT / "examples").glob("*.py"))
    for path in (ROOT / "examples").glob("*.ipynb"):
        cells = nbformat.reads(path.read_text(encoding="utf8"), as_version=4).cells  # type: ignore[no-untyped-call]
        yield from ((path.name, cell.source) for cell in cells if cell.cell_type == "code")


def _imported(text: str) -> set[str]:
    """The modules that code imports."""
    nodes = [*ast.walk(ast.parse(text))]
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_pages_and_examples_import_no_room() -> None:
    rooms = [
        (where, name)
        for where, text in _code()
        for name in _imported(text) - {"exegete", "exegete.plugins"}
        if name.startswith("exegete.") and not name.startswith("exegete.wings.")
    ]
    assert rooms == []
