"""What machines read: the answer and its evidence fit the schema that comes with the package."""

import json
from importlib import resources
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import polars as pl
import pytest

from exegete.audits.answer import answer, decisions
from exegete.audits.context import MethodCost
from exegete.audits.instead import Readable
from exegete.audits.schema import FILE, schema
from exegete.audits.scorecard import Audit
from exegete.page.section import Outcome, Verdict
from tests.audits.cards import still, verdict

KEPT: dict[str, Any] = json.loads((resources.files("exegete.audits") / FILE).read_text(encoding="utf8"))
BESIDE = {"report": "report.html", "notes": ["a note"], "models": ["it predicts well"]}


def written(*lines: Verdict, goal: Any = "faithful") -> dict[str, Any]:
    """An audit as the command line prints it."""
    best = Readable("lrp", 0.9, 0.8, 0.95, 100, MethodCost(1.0, 1.0, 2.5))
    instead = {("t", "m"): (best, Readable("x", 0.9, 0.8, 1.0, 60))}
    audit = Audit(
        answer(lines), lines, 6, decisions(lines, goal), instead, goal, "a developer", ("It was not asked.",),
        frame=pl.DataFrame(),
    )  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(audit.to_json() | BESIDE, allow_nan=False))
    return found


def test_the_file_is_what_the_code_says() -> None:
    assert schema() == KEPT, f"write schema() to src/exegete/audits/{FILE} again"
    jsonschema.Draft202012Validator.check_schema(KEPT)


@pytest.mark.parametrize("outcome", ["holds", "fails", "hangs on", "cannot tell"])
def test_audits_fit(outcome: Outcome) -> None:
    lines = [verdict("reads", "holds"), verdict("ranks", outcome), still(), Verdict("used", "t", "m", doubt="why")]
    found = written(*lines)
    jsonschema.validate(found, KEPT)
    (decision,) = found["decisions"]
    assert set(decision) == {
        "task", "model", "answer", "why", "answered", "asked", "reading", "said", "instead", "readings",
    }  # fmt: skip
    said = ["lrp", "x"] if outcome in ("holds", "fails") else []  # what is open says nothing to read
    assert [each["method"] for each in decision["instead"]] == said
    assert len(found["tests"][0]["variants"]) == 3


@pytest.mark.parametrize("wrong", [{"verdict": "maybe"}, {"statistic": "0.3"}, {"section": "here"}])
def test_what_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    found = written(verdict("reads", "holds"), verdict("ranks", "holds"))
    found["tests"][0] |= wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, KEPT)
