"""The house is as its page says: the rooms in order, and the way of an audit through them."""

import re
import shutil
import sys
import tomllib
from collections import Counter
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


def test_no_class_name_stands_for_two_things() -> None:
    found = Counter(
        name for path in SOURCE.rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert [name for name, count in found.items() if count > 1] == []


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
