"""The façade for plugins: every name is there, nothing heavy is imported for it, and our own pages use nothing else."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import nbformat
import pytest

from exegete import plugins
from tests.docs.pages import ROOT, blocks


@pytest.mark.parametrize("name", plugins.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(plugins, name) is not None


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


@pytest.mark.parametrize(("where", "text"), [*_code()])
def test_pages_and_examples_import_no_room(where: str, text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        ours = {name for name in names if name.split(".")[0] == "exegete"}
        rooms = {name for name in ours - {"exegete", "exegete.plugins"} if not name.startswith("exegete.wings.")}
        assert not rooms, f"{where}: {rooms}"
