"""Schema: what `exegete audit --json` prints, as JSON Schema, read from the dataclasses that it is written from.

The file `answer.schema.json` beside this one is the schema of this version, for machines that read answers without
Python; `exegete ls schema` prints it.
"""

from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from exegete.answers.alternatives import Readable
from exegete.answers.context import MethodCost
from exegete.answers.decision import Decision
from exegete.answers.groups import BesideGrade, Group
from exegete.answers.readings import Judged
from exegete.experiments.common.test import Goal
from exegete.experiments.readings.tests import MARGINS
from exegete.report.section import ON_A_PAGE, Variant, Verdict

FILE = "answer.schema.json"


def _object(name: str, given: dict[str, Any]) -> type[BaseModel]:
    """An object with exactly these fields."""
    wanted: dict[str, Any] = {field: (kind, ...) for field, kind in given.items()}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **wanted)


def _of(kind: type, **other: Any) -> dict[str, Any]:
    """A dataclass's fields by name, some of which are written otherwise."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.name not in ON_A_PAGE} | other


def model() -> type[BaseModel]:
    """All that is printed."""
    cost = _object("Cost", dict(get_type_hints(MethodCost)))
    variant = _object("Variant", _of(Variant))
    of_readable = {"better": variant, "specifications": list[variant], "cost": cost | None}  # type: ignore[valid-type]
    readable = _object("Readable", _of(Readable, **of_readable))
    reading = _object("Reading", _of(Judged, **dict.fromkeys(MARGINS, variant | None)))
    group = _object("Group", dict(get_type_hints(Group)))
    sinks = _object("Beside", _of(BesideGrade, classes=list[group], lengths=list[group]))  # type: ignore[valid-type]
    lists = {"instead": list[readable], "beside": sinks, "readings": list[reading]}  # type: ignore[valid-type]
    decision = _object("Decision", {"task": str, "model": str} | _of(Decision, **lists))
    verdict = _object("Verdict", _of(Verdict, variants=list[variant]))  # type: ignore[valid-type]
    found = {
        "answer": str, "findings": list[str], "decisions": list[decision],  # type: ignore[valid-type]
        "goal": Goal, "user": str, "untested": list[str],
        "criteria_version": int, "run": str | None, "tests": list[verdict],  # type: ignore[valid-type]
    }  # fmt: skip
    beside = {"report": str | None, "notes": list[str], "models": list[str]}  # by the command line
    return create_model("Answer", __base__=_object("Found", found), **{k: (v, ...) for k, v in beside.items()})  # type: ignore[call-overload,no-any-return]


def schema() -> dict[str, Any]:
    """As JSON Schema (draft 2020-12)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model().model_json_schema()
