"""Schema: what `exegete audit --json` prints, as JSON Schema, read from the dataclasses that it is written from.

The file `answer.schema.json` beside this one is the schema of this version, for machines that read answers without
Python; `exegete ls schema` prints it.
"""

from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from exegete.audits.context import MethodCost
from exegete.audits.decision import Decision
from exegete.audits.instead import Readable
from exegete.audits.readings import MARGINS, Judged
from exegete.experiments.common.test import Goal
from exegete.page.section import Variant, Verdict

FILE = "answer.schema.json"
ON_A_PAGE = ("of", "section")  # of a verdict: where a report shows it


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
    readable = _object("Readable", _of(Readable, cost=cost | None))
    variant = _object("Variant", _of(Variant))
    reading = _object("Reading", _of(Judged, **dict.fromkeys(MARGINS, variant | None)))
    lists = {"instead": list[readable], "readings": list[reading]}  # type: ignore[valid-type]
    decision = _object("Decision", {"task": str, "model": str} | _of(Decision, **lists))
    verdict = _object("Verdict", _of(Verdict, variants=list[variant]))  # type: ignore[valid-type]
    found = {
        "answer": str, "decisions": list[decision], "goal": Goal, "user": str, "untested": list[str],  # type: ignore[valid-type]
        "criteria_version": int, "run": str | None, "tests": list[verdict],  # type: ignore[valid-type]
    }  # fmt: skip
    beside = {"report": str | None, "notes": list[str], "models": list[str]}  # by the command line
    return create_model("Answer", __base__=_object("Found", found), **{k: (v, ...) for k, v in beside.items()})  # type: ignore[call-overload,no-any-return]


def schema() -> dict[str, Any]:
    """As JSON Schema (draft 2020-12)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model().model_json_schema()
