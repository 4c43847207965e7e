"""The table of the decision, row by row, by scorecards that were made up for it."""

from dataclasses import replace
from typing import get_args

import pytest

from exegete.audits.decision import ANSWERS, NOT_ASKED, Answer, decide
from exegete.experiments.tests import declared
from exegete.page.section import Outcome, Variant, Verdict
from tests.audits.cards import WAYS, still, variant, verdict


def card(*lines: Verdict) -> dict[str, Verdict]:
    return {line.name: line for line in lines}


def both(reads: Outcome, ranks: Outcome, *more: Verdict) -> dict[str, Verdict]:
    return card(verdict("reads", reads), verdict("ranks", ranks), *more)


def at(line: Verdict, *means: float) -> Verdict:
    """The same line with other means."""
    threshold = line.threshold or 0.0
    found = tuple(
        variant(each.name, each.verdict, threshold, mean) for each, mean in zip(line.variants, means, strict=True)
    )
    return replace(line, variants=found)


@pytest.mark.parametrize(
    ("named", "answer", "said"),
    [
        (both("holds", "holds"), "yes", "order words by how much they matter (Γ 0.90), and words act"),
        (both("holds", "holds", verdict("supports", "holds")), "yes", "through their own weights (M 0.45)"),
        (both("holds", "holds", verdict("supports", "cannot tell")), "yes", "order words"),
        (both("holds", "holds", verdict("supports", "fails")), "yes by size", "mostly hold the prediction back"),
        (both("fails", "holds", still()), "no", "computed and not read"),
        (both("fails", "fails", still()), "no", "computed and not read"),
        (both("fails", "holds", verdict("locates", "holds")), "no", "which states count, and states are not words"),
        (both("fails", "cannot tell", verdict("locates", "fails")), "no", "hardly goes through its own weight"),
        (both("fails", "hangs on"), "no", "hardly goes through its own weight"),
        (both("holds", "fails"), "no", "do not order words by how much they matter (Γ 0.50)"),
        (both("hangs on", "fails"), "no", "do not order words"),
        (both("cannot tell", "fails", verdict("locates", "holds")), "no", "It says which states count (Γ 0.90)"),
        (both("holds", "hangs on"), "hangs on", f"by {WAYS[0]} (0.90), and do not by {WAYS[1]} (0.50); {WAYS[2]}"),
        (both("hangs on", "holds"), "hangs on", "Words act through their own weights by"),
        (both("cannot tell", "hangs on"), "hangs on", "Weights order words"),
        (both("holds", "cannot tell"), "undecided", "how much they matter is not settled"),
        (both("cannot tell", "holds"), "undecided", "its own weight is not settled"),
        (both("cannot tell", "cannot tell"), "undecided", "is not settled"),
        (card(verdict("ranks", "holds")), "undecided", NOT_ASKED),
        (card(verdict("used", "holds")), "undecided", NOT_ASKED),
    ],
)
def test_every_row_of_the_table(named: dict[str, Verdict], answer: Answer, said: str) -> None:
    found = decide(named)
    assert found.answer == answer
    assert said in found.why
    assert found.first.startswith(ANSWERS[answer][:-1])


@pytest.mark.parametrize(("means", "partly"), [((0.6, 0.55, 0.65), True), ((0.6, 0.45, 0.65), False)])
def test_above_one_half_in_all_specifications_it_is_partly(means: tuple[float, ...], partly: bool) -> None:
    why = decide(card(verdict("reads", "holds"), at(verdict("ranks", "fails"), *means))).why
    assert ("only partly" in why) == partly
    assert f"(Γ {min(means):.2f} to {max(means):.2f})" in why


def test_the_coverage_counts_what_was_answered() -> None:
    ways: dict[str, Outcome] = dict(zip(WAYS, ("holds", "cannot tell", "fails"), strict=True))
    found = decide(card(verdict("reads", "cannot tell", ways), verdict("ranks", "holds")))
    assert (found.answered, found.asked) == (5, 6)
    assert found.first.startswith("Undecided (5 of 6 specifications answered). ")


def test_void_specifications_are_asked_and_not_answered_and_their_means_are_not_told() -> None:
    line = verdict("ranks", "holds")
    void = replace(line.variants[-1], verdict="cannot tell", void="no word moves the prediction", statistic=0.111)
    named = card(verdict("reads", "holds"), replace(line, variants=(*line.variants[:-1], void)))
    found = decide(named)
    assert (found.answer, found.answered, found.asked) == ("yes", 5, 6)
    assert "0.11" not in found.why


def test_a_doubt_is_told_once() -> None:
    lines = [replace(verdict(name, "cannot tell"), doubt="the model guesses") for name in ("reads", "ranks")]
    found = decide(card(*lines))
    assert found.answer == "undecided"
    assert found.why.count("The model guesses") == 1
    untestable = Verdict("reads", "t", "m", doubt="this model has one class")
    assert decide(card(untestable)).why == "It can't be tested: this model has one class."


def test_only_reads_and_ranks_decide_whether_it_is_faithful() -> None:
    assert {test.name for test in declared().values() if "faithful" in test.goals} == {"reads", "ranks"}
    others = [name for name in declared() if name not in ("reads", "ranks", "locates", "supports")]
    for outcome in get_args(Outcome):
        lines = [Verdict(name, "t", "m", verdict=outcome) for name in others]
        assert decide(card(*lines, verdict("reads", "holds"), verdict("ranks", "holds"))).answer == "yes"
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
        assert ("used" if used == "fails" else "finds facts") in decision.why
    doubted = [replace(line, doubt="why") for line in lines]
    assert decide(card(*doubted), "sanity").answer == "undecided"


def test_variants_of_the_json_are_those_of_the_line() -> None:
    assert decide(both("holds", "holds")).to_json() == {
        "answer": "yes", "answered": 6, "asked": 6, "why": decide(both("holds", "holds")).why, "reading": "",
        "said": "",
    }  # fmt: skip
    assert isinstance(verdict("reads", "holds").to_json()["variants"][0], dict)
    assert Variant("a").verdict == "not testable"
