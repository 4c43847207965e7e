"""Rules of error: what a test that is asked in several ways says, by small exact cases and by simulation."""

import math

import pytest
import torch
from torch import Tensor

from exegete.answers.rules import ERROR, TEXTS, Ruled, Varying, apply_rules
from exegete.measures.bounds import bounded_mean

SHAPE = torch.special.ndtri((torch.arange(100, dtype=torch.float64) + 0.5) / 100) / 10  # as a normal sample


def around(mean: float, n: int = 100) -> Tensor:
    """Values with this mean, of a standard deviation of 0.1."""
    values: Tensor = (mean + SHAPE[:n])[None]
    return values


def asked(*means: float, void: dict[str, str] | None = None, threshold: float = 0.5) -> Varying:
    return Varying(threshold, 1.0, {str(i): around(mean) for i, mean in enumerate(means)}, void or {})


def just(alpha: float, above: bool = True) -> float:
    """A mean that is sure to lie above (or below) the threshold ½ at this error, and at hardly any smaller one."""
    sign = 1 if above else -1
    arms = (0.5 + sign * 0.0002 * step for step in range(1000))
    return next(
        m
        for m in arms
        if (bounded_mean(around(m), alpha).low > 0.5 if above else bounded_mean(around(m), alpha).high < 0.5)
    )


def outcome(*means: float) -> str:
    return apply_rules([asked(*means)])[0].outcome


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((0.6, 0.7), "holds"),
        ((0.6, 0.505), "cannot tell"),  # one that is not sure is enough
        ((0.4, 0.3), "fails"),
        ((0.4, 0.495), "cannot tell"),
        ((0.4, 0.6), "hangs on"),
        ((0.4, 0.505), "cannot tell"),  # it needs two ends that are sure
        ((0.4, just(ERROR)), "cannot tell"),  # at 5 % this holds, at 5 % / 2 not
        ((0.4, 0.5, 0.6), "hangs on"),
    ],
)
def test_a_test_holds_or_fails_in_every_specification(means: tuple[float, ...], expected: str) -> None:
    assert outcome(*means) == expected


def test_holding_in_many_needs_no_correction() -> None:
    """Sure at 5 %, one-sided, and not at any corrected level."""
    assert outcome(*[just(ERROR)] * 20) == "holds"
    assert bounded_mean(around(just(ERROR)), ERROR / 2).low < 0.5 < bounded_mean(around(just(ERROR)), ERROR).low


def test_failures_are_corrected_for_the_number_of_tests() -> None:
    """Holm: the surest at 5 % / 2, then the other at 5 %."""
    alone, beside = (
        apply_rules([asked(just(ERROR, above=False))]),
        apply_rules([asked(just(ERROR, above=False)), asked(0.5)]),
    )
    assert (alone[0].outcome, beside[0].outcome) == ("fails", "cannot tell")
    surely = apply_rules([asked(just(ERROR, above=False)), asked(0.4)])
    assert [test.outcome for test in surely] == ["fails", "fails"]
    with_void = apply_rules([asked(just(ERROR, above=False)), asked(0.5, void={"0": "no word matters"})])
    assert with_void[0].outcome == "fails"  # what can't be asked is no test


def test_the_least_sure_specification_is_the_p_of_its_test() -> None:
    found = apply_rules([asked(0.2, just(ERROR, above=False)), asked(0.5)])
    assert found[0].outcome == "cannot tell"  # the largest p is over 5 % / 2


@pytest.mark.parametrize(("tests", "expected"), [(1, "hangs on"), (8, "cannot tell")])
def test_to_hang_on_is_searched_among_all_tests_and_specifications(tests: int, expected: str) -> None:
    """On either side enough at 5 % / 2, and not at 5 % / 16."""
    ends = just(ERROR / 2, above=False), just(ERROR / 2)
    found = apply_rules([asked(*ends), *[asked(0.5, 0.5)] * (tests - 1)])
    assert found[0].outcome == expected


def test_what_is_void_does_not_count_and_is_shown() -> None:
    found = apply_rules([asked(0.6, 0.2, void={"1": "no word matters"})])[0]
    assert (found.outcome, found.decisive) == ("holds", "0")
    assert [(v.verdict, v.void) for v in found.variants] == [("holds", ""), ("cannot tell", "no word matters")]
    nothing = apply_rules([asked(0.6, void={"0": "no word matters"})])[0]
    assert (nothing.outcome, nothing.decisive) == ("cannot tell", "")


@pytest.mark.parametrize(("n", "expected"), [(TEXTS, "holds"), (TEXTS - 1, "cannot tell")])
def test_fewer_texts_than_forty_say_nothing(n: int, expected: str) -> None:
    values = torch.cat([around(0.95)[:, -n:], torch.full((1, 100 - n), math.nan, dtype=torch.float64)], 1)
    found = apply_rules([Varying(0.5, 1.0, {"way": values}, {})])[0]
    assert found.outcome == expected
    assert bool(found.variants[0].void) == (n < TEXTS)
    assert found.variants[0].n == n


def test_the_decisive_specification_is_the_worst_for_the_verdict() -> None:
    assert apply_rules([asked(0.9, 0.6, 0.7)])[0].decisive == "1"
    assert apply_rules([asked(0.1, 0.4, 0.3)])[0].decisive == "1"
    assert apply_rules([asked(0.9, 0.503, 0.2)])[0].decisive == "1"  # open, or hanging: nearest to the threshold


def test_what_a_specification_says_is_as_sure_as_the_outcome_needs() -> None:
    """One that holds at 5 % only is not named as what a verdict hangs on."""
    found = apply_rules([asked(0.3, 0.7, just(ERROR))])[0]
    assert found.outcome == "hangs on"
    assert [v.verdict for v in found.variants] == ["fails", "holds", "cannot tell"]


def simulated(truths: tuple[tuple[float, ...], ...], seed: int) -> list[Ruled]:
    """Two tests on the same 60 texts: their specifications share most of what texts differ by."""
    noise = torch.Generator().manual_seed(seed)
    shared = torch.randn(60, generator=noise, dtype=torch.float64)
    tests = []
    for means in truths:
        own = [torch.randn(60, generator=noise, dtype=torch.float64) for _ in means]
        values = {
            str(i): (m + 0.1 * (0.8 * shared + 0.6 * o))[None] for i, (m, o) in enumerate(zip(means, own, strict=True))
        }
        tests.append(Varying(0.5, 1.0, values, {}))
    return apply_rules(tests)


def errors(truths: tuple[tuple[float, ...], ...], times: int = 300) -> dict[str, float]:
    """How often each outcome is said of any test."""
    said = [{test.outcome for test in simulated(truths, seed)} for seed in range(times)]
    return {o: sum(o in each for each in said) / times for o in ("holds", "fails", "hangs on")}


AT, CHANCE = 0.5, 0.025  # the threshold, and what 300 simulations may add by chance (2 standard errors of 5 %)


@pytest.mark.slow
def test_at_its_threshold_a_test_seldom_holds_fails_or_hangs() -> None:
    found = errors(((AT, AT, AT), (AT, AT, AT)))
    assert found["holds"] <= 2 * ERROR + CHANCE  # of either test; a Yes needs both
    assert found["fails"] <= ERROR + CHANCE
    assert found["hangs on"] <= ERROR + CHANCE


@pytest.mark.slow
def test_one_specification_that_fails_at_the_threshold_forbids_holding() -> None:
    assert errors(((0.9, 0.8, AT),))["holds"] <= ERROR + CHANCE
    assert errors(((0.1, 0.2, AT),))["fails"] <= ERROR + CHANCE
    assert errors(((0.9, 0.8, AT), (0.9, AT, 0.8)))["hangs on"] <= ERROR + CHANCE
