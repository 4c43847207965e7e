"""Known truths: what the audit says of transformers of which we know what may be read, and of their readings."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from exegete.answers.decision import Decision, decide
from exegete.answers.judgement_cache import keep_judgement, read_judgement
from exegete.answers.readings import Judged, Ways
from exegete.answers.schema import schema
from exegete.report.section import Variant, Verdict
from exegete.wings.calibration import transformers
from tests.answers.cards import grading_that

pytestmark = pytest.mark.slow

audited = cache(transformers.audit_transformer)


def lines_of(name: str) -> dict[str, Judged]:
    (found,) = audited(name).readings.values()
    return {line.kind: line for line in found.lines if line.reads is not None}


def decision_of(name: str) -> Decision:
    (found,) = audited(name).decisions.values()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", transformers.WRONG)
def test_no_truth_gets_a_wrong_answer(name: str) -> None:
    assert decision_of(name).answer not in transformers.WRONG[name]


def test_planted_at_the_readout_may_be_read() -> None:
    assert decision_of("planted").answer == "yes"
    assert lines_of("planted")["readout"].verdict == "holds"


@pytest.mark.slow
def test_planted_below_may_be_read_there_and_the_answer_says_where() -> None:
    decision = decision_of("planted below")
    assert (decision.answer, decision.reading) == ("yes as", "reading:site=encoder.0")
    assert decision.first.startswith("Yes, as layer encoder.0 (mean of heads, read from the first token)")
    assert "second fine-tuning seed" in decision.why


@pytest.mark.slow
def test_a_readout_that_copies_and_is_not_read_is_no_reason() -> None:
    decision, lines = decision_of("copied at the readout"), lines_of("copied at the readout")
    assert decision.answer == "no"
    assert lines["readout"].ranks is not None
    assert (lines["readout"].ranks.statistic or 0) > 0.7  # it orders words, and nobody reads it
    assert "No way of reading its attention that we know" in decision.why


def test_a_copy_in_one_of_two_heads_is_no_reason() -> None:
    decision, lines = decision_of("copied in one head"), lines_of("copied in one head")
    assert decision.answer == "no"
    assert lines["readout"].failed == ("carried",)  # Γ and M alone would not tell
    assert "the differences of its weights are not used" in decision.why  # the head that is read has equal weights


def test_a_copy_over_layers_is_no_reason() -> None:
    """Its Γ and M are those of a reason: M cuts the layer that is read, and the order is that of the other."""
    decision, lines = decision_of("copied below"), lines_of("copied below")
    assert decision.answer == "no"
    assert not decision.reading
    for kind in ("layers", "rollout", "columns of all layers"):
        assert lines[kind].failed == ("carried",)
    assert lines["layer"].failed == ("carried", "reads")


def test_what_a_machine_reads_has_the_readings() -> None:
    found = audited("copied below")
    said = json.loads(json.dumps(found.to_json(), allow_nan=False))
    (decision,) = said["decisions"]
    assert [line["kind"] for line in decision["readings"]].count("baseline") == 3
    of_decisions = {"$ref": "#/$defs/Decision", "$defs": schema()["$defs"]}
    jsonschema.validate(decision, of_decisions)
    (table,) = found.reading_tables()
    assert "single layers and heads" in table.caption
    assert len(table.cells()) == 8 + 3


def test_what_was_judged_of_them_reads_back(tmp_path: Path) -> None:
    found = audited("copied below")
    keep_judgement(tmp_path, "key", found)
    back = read_judgement(tmp_path, "key", found.frame)
    assert back is not None
    assert back.readings == found.readings
    assert back.to_json()["decisions"] == found.to_json()["decisions"]


def way(kind: str, verdict: str, *, chosen: bool = False, failed: tuple[str, ...] = ()) -> Judged:
    number = Variant("delete alone, log-odds", 0.9, 0.8, 0.95, 60, "holds")
    return Judged(
        f"reading:{kind}", kind, "encoder.1", "mean", "the first token", verdict, number, number, number,  # type: ignore[arg-type]
        2, failed, chosen,
    )  # fmt: skip


def verdicts_that(said: str) -> dict[str, Verdict]:
    variants = (Variant("delete alone, log-odds", 0.9, 0.8, 0.95, 60, "holds"),)
    return {name: Verdict(name, verdict=said, variants=variants) for name in ("reads", "ranks")}  # type: ignore[arg-type]


READOUT = way("readout", "fails", failed=("ranks",))
STRONG, HARDLY = grading_that("holds", "holds"), grading_that("holds", "fails")


def test_the_readout_is_judged_first() -> None:
    ways = Ways((replace(READOUT, verdict="holds", failed=()), way("layers", "holds", chosen=True)), 1)
    alone = decide(verdicts_that("holds"), grading=STRONG)
    assert alone.answer == "yes"
    assert decide(verdicts_that("holds"), "faithful", ways, STRONG) == alone


def test_only_what_was_chosen_can_be_the_answer() -> None:
    lucky = Ways((READOUT, way("layers", "cannot tell", chosen=True), way("rollout", "holds")), 1)
    found = decide(verdicts_that("fails"), "faithful", lucky, HARDLY)
    assert found.answer == "no"
    assert "none is shown to hold" in found.why or "1 fail" in found.why
    chosen = Ways((READOUT, way("layers", "holds", chosen=True)), 2)
    found = decide(verdicts_that("fails"), "faithful", chosen, HARDLY)
    assert (found.answer, found.reading) == ("yes as", "reading:layers")
    assert found.label.startswith("Yes, as the mean over layers")
    assert "each of 2 fine-tunings" in found.why
    assert found.gamma is not None
    assert found.gamma[1] < 0.5  # of the readout


def test_an_order_that_nobody_reads_is_no_reason_whatever_it_is_worth() -> None:
    ways = Ways((replace(READOUT, failed=("carried",)),), 1)
    for grades, before in ((STRONG, "yes"), (grading_that("holds", "cannot tell"), "undecided")):
        assert decide(verdicts_that("holds"), grading=grades).answer == before
        found = decide(verdicts_that("holds"), "faithful", ways, grades)
        assert found.answer == "no"
        assert "whose order nobody reads" in found.why


def test_without_a_vote_nothing_is_said() -> None:
    silent = {name: replace(test, votes=False) for name, test in verdicts_that("fails").items()}
    chosen = Ways((READOUT, way("layers", "holds", chosen=True)), 1)
    assert decide(silent, "faithful", chosen, HARDLY).answer == "undecided"
