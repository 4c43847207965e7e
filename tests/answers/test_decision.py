"""The table of the decision, row by row, by scorecards that were made up for it."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from exegete.answers.context import GUESS
from exegete.answers.decision import ANSWERS, NO_VOTE, NOT_ASKED, WORST, Answer, decide, how_far
from exegete.answers.grades import Grading
from exegete.experiments.tests import all_tests
from exegete.report.section import Outcome, Variant, Verdict
from tests.answers.cards import WAYS, around, grading, grading_that, still, values_of, verdict


def card(*lines: Verdict) -> dict[str, Verdict]:
    return {line.name: line for line in lines}


def both(reads: Outcome, ranks: Outcome, *more: Verdict) -> dict[str, Verdict]:
    return card(verdict("reads", reads), verdict("ranks", ranks), *more)


def wide(mean: float, n: int) -> Tensor:
    """Values of 400 texts, of which only so many say something, far apart."""
    values = around(mean, off=0.42)
    values[:, n:] = torch.nan
    return values


LINES = both("holds", "holds")
FAR = "Attention goes 90 % of the way from a random to the best order of words (Γ 0.90): in 95 of 100 pairs"
TO = "Attention goes 30 to 90 % of the way from a random to the best order of words (Γ 0.90): in 65 to 95 of 100 pairs"


@pytest.mark.parametrize(
    ("named", "grades", "answer", "said"),
    [
        (
            LINES,
            grading_that("holds", "holds"),
            "yes",
            f"{FAR}, the word with more weight matters more when removed. Words act through",
        ),
        (LINES, grading_that("holds", "holds"), "yes", "count (F > 0.15): sure at 5 %, with Γ > 0.67."),
        (LINES | card(verdict("supports", "holds")), grading_that("holds", "holds"), "yes", FAR),
        (LINES | card(verdict("supports", "cannot tell")), grading_that("holds", "holds"), "yes", FAR),
        (LINES | card(verdict("supports", "fails")), grading_that("holds", "holds"), "yes by size", "hold the predic"),
        (LINES | card(still()), grading_that("fails", "holds"), "no", "computed and not read"),
        (
            LINES | card(verdict("locates", "holds")),
            grading_that("fails", "holds"),
            "no",
            "a state mixes several words",
        ),
        (LINES | card(verdict("locates", "fails")), grading_that("fails", "cannot tell"), "no", "hardly goes through"),
        (LINES, grading_that("fails", "hangs on"), "no", "hardly goes through its own weight (M 0.05)"),
        (LINES, grading_that("holds", "holds", "fails"), "no", "Equal weights would do nearly as well"),
        (LINES, grading_that("cannot tell", "cannot tell", "fails"), "no", "are not used (F 0.05)"),
        (LINES, grading_that("holds", "fails"), "no", "Attention goes 30 % of the way"),
        (LINES, grading_that("hangs on", "fails"), "no", "65 of 100 pairs"),
        (LINES | card(verdict("locates", "holds")), grading_that("cannot tell", "fails"), "no", "hidden states well"),
        (LINES, grading(values_of(0.6, 0.55, 0.65)), "partly", "Attention goes 55 to 65 % of the way"),
        (LINES, grading(values_of(0.6, wide(0.58, 40))), "at most partly", "58 to 60 %"),
        (LINES, grading(values_of(0.6, around(0.69, 150, 0.25))), "partly", "60 to 69 %"),
        (LINES, grading_that("holds", "hangs on"), "hardly to strongly", f"Γ is 0.90 by {WAYS[0]}, and 0.30 by"),
        (LINES, grading(values_of(0.9, 0.6)), "partly to strongly", f"Γ is 0.90 by {WAYS[0]}, and 0.60 by {WAYS[1]}."),
        (LINES, grading(values_of(0.6, 0.3)), "hardly to partly", f"Γ is 0.60 by {WAYS[0]}, and 0.30 by {WAYS[1]}."),
        (LINES, grading(values_of(0.9, 0.6, wide(0.52, 40))), "at most partly", f"Γ is 0.90 by {WAYS[0]}"),
        (
            LINES,
            grading_that("hangs on", "holds"),
            "undecided",
            "through its own weight hangs on how it is removed",
        ),
        (LINES, grading_that("holds", "holds", "hangs on"), "undecided", "differences of its weights count hangs"),
        (LINES, grading(values_of(around(0.8, 60, 0.2))), "at least partly", "Attention goes 80 %"),
        (LINES, grading(values_of(around(0.7, 200, 0.15))), "about strong", "Attention goes 70 %"),
        (LINES, grading(values_of(around(0.5, 200, 0.15))), "about partly", "Attention goes 50 %"),
        (LINES, grading_that("cannot tell", "hangs on"), "at most partly", "is not settled"),
        (LINES, grading_that("holds", "cannot tell"), "undecided", "Attention goes 58 %"),
        (LINES, grading_that("cannot tell", "holds"), "undecided", "through its own weight is not settled"),
        (LINES, grading_that("holds", "holds", "cannot tell"), "undecided", "of its weights count is not settled"),
        (card(verdict("ranks", "holds")), grading_that("holds", "holds"), "undecided", NOT_ASKED),
        (card(verdict("used", "holds")), None, "undecided", NOT_ASKED),
        (LINES, None, "undecided", f"{NOT_ASKED}."),
    ],
)
def test_every_row_of_the_table(named: dict[str, Verdict], grades: Grading | None, answer: Answer, said: str) -> None:
    found = decide(named, grading=grades)
    assert found.answer == answer
    assert said in found.why
    assert found.first.startswith(found.label)
    assert found.label.split("{")[0].startswith(ANSWERS[answer].split("{")[0])
    assert "{" not in found.first


def test_every_answer_has_words_and_a_worst() -> None:
    assert set(ANSWERS) == set(WORST) == set(get_args(Answer))
    assert {answer for answer, worst in WORST.items() if worst == 2} == {"yes", "yes by size", "yes as"}
    assert {answer for answer, worst in WORST.items() if worst == 1} == {
        "at least partly", "about strong", "partly to strongly", "partly",
    }  # fmt: skip


def test_what_a_decision_rests_on() -> None:
    found = decide(LINES, grading=grading(values_of(around(0.9, 80), around(0.95))))
    assert found.gamma == pytest.approx((0.9, 0.95))
    assert (found.edges, found.texts, found.settled) == ((0.7, 0.5), 80, True)
    open_ = decide(LINES, grading=grading_that("holds", "cannot tell"))
    assert (open_.texts, open_.settled) == (40, False)


def test_edges_are_those_of_the_criteria() -> None:
    told = decide(LINES, grading=grading(values_of(around(0.6, 200, 0.15)), edges=(0.6, 0.45)))
    assert (told.answer, told.label) == (
        "about strong",
        "Partly or strongly, too near the line between the two (Γ 0.60) to tell",
    )
    assert decide(LINES, grading=grading(values_of(0.55), edges=(0.5, 0.3))).answer == "yes"


def test_void_specifications_do_not_count_and_their_means_are_not_told() -> None:
    ranks = values_of(0.9, 0.9, 0.111)
    found = decide(LINES, grading=grading(ranks, void={WAYS[2]: "no word moves the prediction"}))
    assert found.answer == "yes"
    assert "11" not in found.why
    assert found.gamma == pytest.approx((0.9, 0.9))


def test_without_a_vote_it_is_told_how_far_it_goes_and_nothing_more() -> None:
    silent = {name: replace(line, votes=False) for name, line in LINES.items()}
    found = decide(silent, grading=grading_that("holds", "holds"))
    assert (found.answer, found.gamma, found.edges) == ("undecided", None, (0.7, 0.5))
    assert found.why == f"{NO_VOTE} {how_far(grading_that('holds', 'holds').ranks)}"
    assert decide(silent).why == NO_VOTE


def test_a_doubt_is_told_once() -> None:
    lines = [replace(verdict(name, "cannot tell"), doubt="the model guesses") for name in ("reads", "ranks")]
    found = decide(card(*lines))
    assert found.answer == "undecided"
    assert found.why.count("The model guesses") == 1
    untestable = Verdict("reads", "t", "m", doubt="this model has one class")
    assert decide(card(untestable)).why == "It can't be tested: this model has one class."


def test_only_three_tests_decide_whether_it_is_faithful() -> None:
    deciding = {"reads", "ranks", "carries"}
    assert {test.name for test in all_tests().values() if "faithful" in test.goals} == deciding
    others = [name for name in all_tests() if name not in {*deciding, "locates", "supports"}]
    for outcome in get_args(Outcome):
        lines = [Verdict(name, "t", "m", verdict=outcome) for name in others]
        assert decide(card(*lines) | LINES, grading=grading_that("holds", "holds")).answer == "yes"
        assert decide(card(*lines)).answer == "undecided"


@pytest.mark.parametrize(
    ("used", "found", "answer"),
    [
        ("holds", "holds", "yes"),
        ("holds", "fails", "no"),
        ("fails", "holds", "no"),
        ("holds", "cannot tell", "undecided"),
        ("holds", None, "undecided"),
    ],
)
def test_sanity_needs_something_that_must_be_found(used: Outcome, found: Outcome | None, answer: Answer) -> None:
    lines = [Verdict("used", "t", "m", verdict=used)]
    lines += [Verdict("finds_facts", "t", "m", verdict=found)] if found else []
    decision = decide(card(*lines), "sanity")
    assert decision.answer == answer
    assert "specification" not in decision.first
    assert "{" not in decision.first
    if answer == "no":
        assert all_tests()["used" if used == "fails" else "finds_facts"].label in decision.why
    doubted = [replace(line, doubt="why") for line in lines]
    assert decide(card(*doubted), "sanity").answer == "undecided"


def test_a_decision_as_machines_read_it() -> None:
    found = decide(LINES, grading=grading(values_of(0.9)))
    assert found.to_json() == {
        "answer": "yes", "why": found.why, "gamma": pytest.approx((0.9, 0.9)), "edges": (0.7, 0.5), "texts": 400,
        "settled": True, "reading": "", "said": "",
    }  # fmt: skip
    assert isinstance(verdict("reads", "holds").to_json()["variants"][0], dict)
    assert Variant("a").verdict == "not testable"


@pytest.mark.parametrize(
    ("doubt", "train"),
    [
        (GUESS, True),
        ("in 56% of the first texts no word matters enough to be ranked", True),
        ("39 texts say something, and a verdict needs 40", False),
    ],
)
def test_a_model_that_learnt_too_little_is_to_be_trained_longer(doubt: str, train: bool) -> None:
    named = {name: replace(verdict(name, "cannot tell"), doubt=doubt) for name in ("reads", "ranks", "carries")}
    said = decide(named).first
    assert said.startswith(f"Undecided. {doubt[0].upper()}{doubt[1:]}.")
    assert said.endswith("Train it longer, or on more texts, and ask again.") == train
