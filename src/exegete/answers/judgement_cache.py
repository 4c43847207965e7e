"""Judgements of runs, which are not made again while everything that they depend on is as it was.

That is the code, the criteria, the goal, the cells and the rows. Where a user's own code has a part in a run (its
manifest has no seal), nobody can tell, and it is judged every time.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pydantic import TypeAdapter, ValidationError

from exegete.answers.alternatives import Readable
from exegete.answers.answer import in_short
from exegete.answers.context import Where
from exegete.answers.criteria import Criteria
from exegete.answers.decision import Decision
from exegete.answers.groups import BesideGrade
from exegete.answers.readings import Ways
from exegete.answers.scorecard import Audit
from exegete.base.errors import ExegeteError
from exegete.base.files import read_json
from exegete.base.memo import key_of, read_memo, write_memo
from exegete.base.source import digest_of, package_hash
from exegete.experiments.common.test import Goal
from exegete.report.section import Verdict
from exegete.runs.run import read_manifest

JUDGED = "judged.json"


class _Kept(NamedTuple):
    """An audit without its run and its frame."""

    answer: str
    tests: tuple[Verdict, ...]
    criteria_version: int
    decisions: tuple[tuple[Where, Decision], ...]
    instead: tuple[tuple[Where, tuple[Readable, ...]], ...]
    goal: Goal
    user: str
    untested: tuple[str, ...]
    readings: tuple[tuple[Where, Ways], ...]
    findings: tuple[str, ...]
    beside: tuple[tuple[Where, BesideGrade], ...]


_FORM = TypeAdapter(_Kept)


def judgement_key(run: Path, criteria: Criteria, goal: Goal) -> str | None:
    """Everything that a judgement depends on; None where that can't be told."""
    manifest = read_manifest(run)
    if manifest.get("seal") is None:
        return None
    rows = digest_of(*sorted((run / "tables").glob("*.parquet")))
    asked = criteria.model_dump()
    return key_of(
        cells=manifest["cells"], study=manifest["study"], rows=rows, criteria=asked, goal=goal, code=package_hash()
    )


def keep_judgement(run: Path, key: str | None, audit: Audit) -> None:
    """Write a judgement, if it can be told apart from others and reads back as it was."""
    kept = _Kept(
        audit.answer, audit.tests, audit.criteria_version, tuple(audit.decisions.items()),
        tuple(audit.instead.items()), audit.goal, audit.user, audit.untested, tuple(audit.readings.items()),
        audit.findings, tuple(audit.beside.items()),
    )  # fmt: skip
    written = _FORM.dump_json(kept)  # what is no number is null, and then doesn't read back
    with suppress(ValidationError):
        if key is not None and _FORM.validate_json(written) == kept:
            write_memo(run / JUDGED, "audit", key, json.loads(written))


def read_judgement(run: Path, key: str | None, frame: pl.DataFrame) -> Audit | None:
    """A judgement that was kept under this key, if there is one."""
    made = None if key is None else read_memo(run / JUDGED, "audit", key)
    if made is None:
        return None
    kept = _FORM.validate_python(made)
    by_model = {name: dict(getattr(kept, name)) for name in ("decisions", "instead", "readings", "beside")}
    return Audit(**kept._asdict() | by_model, run=run, frame=frame)


def cached_answers(run: Path) -> dict[Where, str]:
    """In short what was answered in a run by task and model, as it was kept; nothing where it was by another version,
    or for another goal.
    """
    with suppress(ValidationError, ExegeteError, KeyError):
        kept = _FORM.validate_python(read_json(run / JUDGED, "audit")["audit"])
        instead = dict(kept.instead)
        if kept.goal == "faithful":
            return {where: in_short(decision, instead.get(where, ())) for where, decision in kept.decisions}
    return {}
