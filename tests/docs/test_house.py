"""The house is as its page says: the rooms in order, and the way of an audit through them."""

import ast
import re
import shutil
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

import pytest
from typer.testing import CliRunner

import exegete
from exegete.base.catalogue import plugins
from exegete.cli import app
from tests.docs.pages import ROOT

SOURCE = Path(exegete.__file__).parent
PAGE = (ROOT / "docs" / "concepts" / "house.md").read_text(encoding="utf8")
WAY = re.findall(r"`([a-z_/]+\.py)`", PAGE.partition("<!-- way:begin -->")[2].partition("<!-- way:end -->")[0])


def test_the_rooms_are_those_that_are_checked_in_their_order() -> None:
    told = re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE)
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    assert [f"exegete.{room}" for room in reversed(told)] == layers
    assert {*told, "wings"} == {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    wings = re.findall(r"^\| `wings/([a-z]+)` \|", PAGE, re.MULTILINE)
    assert sorted(wings) == sorted(name for name, plugin in plugins().items() if plugin.ours)


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf8"))


def _public(tree: ast.Module) -> set[str]:
    """Functions, classes and aliases of a module; constants say what they are where they stand."""
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    every = named | {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in every if not name.startswith("_") and not name.isupper()}


def test_no_public_name_stands_for_two_things() -> None:
    where = defaultdict(list)
    for path, tree in _trees():
        for name in _public(tree):
            where[name].append(path)
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_every_docstring_stands_alone() -> None:
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    texts = [
        (path, ast.get_docstring(node) or "")
        for path, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]
    assert [text for text in texts if text[1].startswith(("The same", "Some of them")) or "PROTOCOLS" in text[1]] == []


def test_files_on_the_way_are_there() -> None:
    assert [name for name in WAY if not (SOURCE / name).is_file()] == []


@contextmanager
def entered() -> Iterator[list[str]]:
    """The files whose functions are called, in the order of their first call."""
    found: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(f"{SOURCE}/")
        if ours and code.co_flags & CO_OPTIMIZED:  # a function: neither a module nor the body of a class
            found.setdefault(str(Path(code.co_filename).relative_to(SOURCE)))

    seen: list[str] = []
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        seen += found


@pytest.mark.slow
def test_an_audit_goes_this_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("reviews.csv", "study.toml"):
        shutil.copy(ROOT / "tests" / "kept" / "0.1" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    with entered() as files:
        done = CliRunner().invoke(app, ["audit", "study.toml", "--out", "run", "--workers", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert Path("run/report.html").is_file()
    assert [name for name in files if name in WAY] == WAY, "\n".join(files)
