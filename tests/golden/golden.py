"""Golden: the numbers of another tree, to the digit, on one machine.

    python tests/golden/golden.py record FOLDER [--tree TREE] [--audit]
    python tests/golden/golden.py compare BEFORE AFTER

`record` runs four small studies through the command line of a tree (another commit in another folder, or this one):
ten models of one text, planted words, two texts, translations, and every experiment; with --audit also the default
audit. `compare` wants the same weights, the same rows and the same scorecard: floats bit by bit. Digits are a matter of
one machine, so nothing is kept in the repository: record the commit before, then this one.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
STUDIES = ("planted", "pairs", "translations", "texts")
DOOR = "from exegete.cli import main; main()"


def record(folder: Path, tree: Path, audit: bool) -> None:
    """Run every study by the code of a tree."""
    for name in STUDIES:
        run(tree, "run", str(HERE / f"{name}.toml"), "--out", str(folder / name))
    if audit:
        run(tree, "audit", "--out", str(folder / "audit"))


def run(tree: Path, *arguments: str) -> None:
    """One command of a tree's command line."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    subprocess.run([sys.executable, "-c", DOOR, *arguments, "--quiet", "--json"], env=environment, check=True)


def differences(before: Path, after: Path) -> Iterator[str]:
    """A sentence for everything that is not the same."""
    runs = sorted(path.parent for path in before.glob("*/manifest.json"))
    if not runs:
        yield f"{before} holds no complete run"
    for one in runs:
        other = after / one.name
        if not (other / "manifest.json").is_file():
            yield f"{one.name}: there is no complete run in {other}"
            continue
        yield from (f"{one.name}: {said}" for said in _weights(one, other))
        yield from (f"{one.name}: {said}" for said in _tables(one, other))


def _weights(one: Path, other: Path) -> Iterator[str]:
    before, after = ({(c["task"], c["model"]): c["weights"] for c in _cells(run)} for run in (one, other))
    for cell in before:
        if before[cell] != after.get(cell):
            yield f"other weights of {' · '.join(cell)}"


def _cells(run: Path) -> list[dict[str, str]]:
    cells: list[dict[str, str]] = json.loads((run / "manifest.json").read_text(encoding="utf8"))["cells"]
    return cells


def _tables(one: Path, other: Path) -> Iterator[str]:
    for table in sorted((one / "tables").glob("*.parquet")):
        twin = other / "tables" / table.name
        if not twin.is_file():
            yield f"no table {table.name}"
        elif not (before := pl.read_parquet(table)).equals(after := pl.read_parquet(twin)):
            yield f"other rows in {table.name}: {_where(before, after)}"
    card = Path("tables") / "scorecard.csv"
    if (one / card).is_file() and (one / card).read_text(encoding="utf8") != (other / card).read_text(encoding="utf8"):
        yield "another scorecard"


def _where(before: pl.DataFrame, after: pl.DataFrame) -> str:
    if before.schema != after.schema or before.height != after.height:
        return f"{before.height} rows of {before.columns} became {after.height} of {after.columns}"
    return ", ".join(name for name in before.columns if not before[name].equals(after[name]))


def main() -> int:
    """The door."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--tree", type=Path, default=HERE.parents[1])
    recording.add_argument("--audit", action="store_true")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        record(given.folder.resolve(), given.tree.resolve(), given.audit)
        return 0
    found = list(differences(given.before, given.after))
    print("\n".join(found) or "every weight, every row and every verdict is the same")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
