"""What machines read: the answer and its evidence fit the schema that comes with the package."""

import json
from importlib import resources
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import polars as pl
import pytest

from exegete.answers.answer import answer, decisions, findings
from exegete.answers.context import MethodCost
from exegete.answers.groups import BesideGrade, Group
from exegete.answers.schema import FILE, schema
from exegete.answers.scorecard import Audit
from exegete.report.section import Outcome, Verdict
from tests.answers.cards import grading_that, known_of, readable, still, verdict

KEPT: dict[str, Any] = json.loads((resources.files("exegete.answers") / FILE).read_text(encoding="utf8"))
BESIDE = {"report": "report.html", "notes": ["a note"], "models": ["it predicts well"]}


def written(*lines: Verdict, goal: Any = "faithful") -> dict[str, Any]:
    """An audit as the command line prints it."""
    where = ("t", "m")
    group = Group("good", 0.8, 0.7, 0.9, 60)
    beside = BesideGrade(0.1, 0.2, 0.3, "the first word", 0.7, (group,), (group._replace(name="short"),))
    instead = {where: (readable("lrp", 0.9, MethodCost(1.0, 1.0, 2.5)), readable("x", 0.9))}
    known = known_of(grading_that(*(line.verdict for line in lines[:2])), instead=instead, beside={where: beside})
    audit = Audit(
        answer(lines, known=known), lines, 6, decisions(lines, goal, known), findings(lines, goal), instead,
        known.beside, goal, "a developer", ("It was not asked.",), frame=pl.DataFrame(),
    )  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(audit.to_json() | BESIDE, allow_nan=False))
    return found


def test_the_file_is_what_the_code_says() -> None:
    assert schema() == KEPT, f"write schema() to src/exegete/answers/{FILE} again"
    jsonschema.Draft202012Validator.check_schema(KEPT)


@pytest.mark.parametrize("outcome", ["holds", "fails", "hangs on", "cannot tell"])
def test_audits_fit(outcome: Outcome) -> None:
    lines = [verdict("reads", "holds"), verdict("ranks", outcome), still(), Verdict("used", "t", "m", doubt="why")]
    found = written(*lines)
    jsonschema.validate(found, KEPT)
    (decision,) = found["decisions"]
    assert set(decision) == {
        "task", "model", "answer", "why", "gamma", "edges", "texts", "settled", "reading", "said", "instead", "beside",
        "readings",
    }  # fmt: skip
    assert [each["method"] for each in decision["instead"]] == ["lrp", "x"]  # whatever the grade
    assert decision["beside"]["idle_is"] == "the first word"
    assert len(found["tests"][0]["variants"]) == 3


@pytest.mark.parametrize("wrong", [{"verdict": "maybe"}, {"statistic": "0.3"}, {"section": "here"}])
def test_what_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    found = written(verdict("reads", "holds"), verdict("ranks", "holds"))
    found["tests"][0] |= wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, KEPT)
