"""Integrity: is every file of a run what was written? What is damaged is set aside, and computed again.

A complete stage knows the checksums of its parts (`stage.json`), a complete run those of its stages, cells, inputs,
tables and figures (`manifest.json`). Of what has none, because an older version wrote it or it is not complete yet, it
is known whether it can be read.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from exegete.base.errors import ExegeteError
from exegete.base.files import read_json
from exegete.base.parquet import checksum, read_parquet
from exegete.runs.store import DONE, PARTS, files_in

MANIFEST, CHECKSUMS, INPUTS = "manifest.json", "checksums", "inputs"


class Damage(NamedTuple):
    """A file of a run that is not what was written."""

    name: str  # inside the run
    why: str


class Inspection(NamedTuple):
    """What was looked at in a run."""

    checked: int  # files that are what was written, by their checksums
    unknown: int  # files without a checksum, which can be read
    damages: list[Damage]


def inspect(run: Path) -> Inspection:
    """Look at every file of a run that others are computed from, or that a person reads."""
    known, broken = _known(run)
    damages = [*broken, *(found for name in sorted(known) if (found := _compared(run, name, known[name])))]
    seen = {*known, *(damage.name for damage in damages)}
    others = [name for name in _readable(run) if name not in seen]
    unread = [found for name in others if (found := _unreadable(run, name))]
    return Inspection(len(known) - len(damages) + len(broken), len(others) - len(unread), damages + unread)


def _known(run: Path) -> tuple[dict[str, str], list[Damage]]:
    """The files whose checksums are known, and proofs that can't be read."""
    found: dict[str, str] = {}
    broken: list[Damage] = []
    for path in [*run.glob(MANIFEST), *sorted((run / "stages").glob(f"*/{DONE}"))]:
        facts, inside = facts_of(path), path.parent.relative_to(run)
        if facts is None:
            broken.append(Damage(path.relative_to(run).as_posix(), "it is no JSON"))
        else:
            parts = facts.get(CHECKSUMS if path.name == MANIFEST else PARTS, {})
            found |= {(inside / name).as_posix(): said for name, said in parts.items()}
    return {name: said for name, said in found.items() if name not in {each.name for each in broken}}, broken


def facts_of(path: Path) -> dict[str, Any] | None:
    """What a file says in JSON; None if it can't be read."""
    try:
        facts = read_json(path, "run")
    except ExegeteError:
        return None
    return facts if isinstance(facts, dict) else None


def _compared(run: Path, name: str, expected: str) -> Damage | None:
    if not (run / name).is_file():
        return Damage(name, "it is gone")
    return None if checksum(run / name) == expected else Damage(name, "it is not what was written")


def _readable(run: Path) -> Iterator[str]:
    """What can be tried where nothing is known of it."""
    for pattern in ("tables/*.parquet", "stages/*/part-*.parquet", "cells/*.json"):
        yield from (path.relative_to(run).as_posix() for path in sorted(run.glob(pattern)))


def _unreadable(run: Path, name: str) -> Damage | None:
    try:
        if name.endswith(".json"):
            read_json(run / name, "cell")
        else:
            read_parquet(run / name)
    except ExegeteError:
        return Damage(name, "it can't be read")
    return None


def refuse_damaged(run: Path) -> None:
    """One sentence for a run that is not what was written."""
    damages = inspect(run).damages
    if damages:
        more = f", and {len(damages) - 1} more files" if len(damages) > 1 else ""
        raise ExegeteError(
            f"{run / damages[0].name} is damaged ({damages[0].why}){more}: `exegete check {run} --repair` computes it "
            "again, and so does the command that made the run"
        )


def set_aside(run: Path) -> dict[str, list[str]]:
    """Remove what is damaged, so that it is computed again; by what is damaged, all that was removed with it."""
    damages = inspect(run).damages
    given = next((damage for damage in damages if damage.name.startswith(f"{INPUTS}/")), None)
    if given is not None:
        raise ExegeteError(
            f"{run / given.name} is damaged ({given.why}) and came from memory: remove it, and make the same call again"
        )
    removed = {damage.name: _lost_with(run, damage.name) for damage in damages}
    for names in removed.values():
        for name in names:
            (run / name).unlink(missing_ok=True)
    for checkpoint in {run.joinpath(*Path(name).parts[:3]) for name in removed if name.count("/") > 2}:
        shutil.rmtree(checkpoint)
    return removed


def _lost_with(run: Path, name: str) -> list[str]:
    """A file, and what must go with it: of a stage its proof, and all of a checkpoint."""
    if not name.startswith("stages/"):
        return [name]
    stage, inside = Path(*Path(name).parts[:2]), Path(*Path(name).parts[:3])
    beside = [path.relative_to(run).as_posix() for path in files_in(run / inside)] if name.count("/") > 2 else []
    return [(stage / DONE).as_posix(), name, *beside]
