"""Extras: the lines that bring a missing library work without a release, and name what pyproject.toml names."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from exegete.base.extras import LIBRARIES, install

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="installed without the project file")
def test_libraries_are_those_of_the_project() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]["optional-dependencies"]
    assert {extra: tuple(declared[extra]) for extra in LIBRARIES} == dict(LIBRARIES)


def test_no_line_asks_for_a_release_of_exegete() -> None:
    assert install("translation") == 'pip install "sacrebleu>=2.4,<3" "tokenizers>=0.20,<1"'
    source = "\n".join(path.read_text(encoding="utf8") for path in (ROOT / "src").rglob("*.py"))
    assert not re.findall(r"pip install[ \"']+exegete\[", source)


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_a_pandas_frame_without_the_extra_is_one_sentence(missing: str) -> None:
    code = (
        "import sys\nfrom importlib.machinery import PathFinder\nfound = PathFinder.find_spec\n"
        f"PathFinder.find_spec = lambda name, *rest: None if name == '{missing}' else found(name, *rest)\n"
        "import polars as pl\nfrom exegete.base.errors import ExegeteError\nfrom exegete.base.extras import to_pandas\n"
        "try:\n    to_pandas(pl.DataFrame({'a': ['x']}))\nexcept ExegeteError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"a pandas frame needs the package {missing}, which is not installed: pip install")
