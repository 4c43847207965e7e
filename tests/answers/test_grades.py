"""Grades: what is sure of made-up values, at which error; and how often what is the same is said to differ."""

import math
from dataclasses import replace
from itertools import product

import polars as pl
import pytest
import torch
from torch import Tensor

from exegete.answers.criteria import load_criteria
from exegete.answers.grades import (
    EARLY,
    NO_BY_OTHERS,
    NO_BY_RANKS,
    SHORT,
    DecidingTest,
    Graded,
    Grading,
    grade,
    grade_test,
)
from exegete.answers.judge import Unjudged, gradings, judge_tests
from exegete.answers.rules import ERROR, TEXTS
from exegete.experiments.common.statistic import Evidence, Varied
from exegete.experiments.mediation.statistics import ranks, reads, specification_name, values_in_order
from exegete.experiments.tests import all_tests
from exegete.measures.betting import Bets
from exegete.runs.study import Study
from exegete.tasks.selection import keyed_order, look_points
from tests.answers.cards import WAYS, around, grading, values_of

EDGES = (0.7, 0.5)


def of(*values: float | Tensor, edges: tuple[float, ...] = EDGES, tolerance: float = 0.03) -> Graded:
    return grade_test(DecidingTest(values_of(*values), {}, edges, tolerance, NO_BY_RANKS))


def first(values: Tensor, value: float, alpha: float, above: bool) -> int:
    """The number of texts from which on the mean is surely above (or below) a value."""
    rejects = "rejects_at_most" if above else "rejects_at_least"
    return next(n for n in range(1, values.shape[1] + 1) if getattr(Bets(values[0, :n]), rejects)(value, alpha))


def changes(values: Tensor, edge: float, tolerance: float, error: float) -> int:
    """The number of texts at which a test with one specification leaves `open`."""
    for n in range(TEXTS, values.shape[1] + 1):
        test = DecidingTest({"a": values[:, :n]}, {}, (edge,), tolerance, error)
        if grade_test(test).side("a", edge) != "open":
            return n
    raise AssertionError("it stays open")


@pytest.mark.parametrize("error", [NO_BY_RANKS, NO_BY_OTHERS])
def test_below_in_all_is_asked_at_the_share_of_the_error_that_a_no_has(error: float) -> None:
    values = around(0.45, 2000, 0.5)
    wanted = first(values, 0.53, error, above=False)
    assert wanted > TEXTS
    assert changes(values, 0.5, 0.03, error) == wanted
    assert first(values, 0.53, NO_BY_RANKS, above=False) < first(values, 0.53, NO_BY_OTHERS, above=False)


def test_the_three_ways_to_a_no_share_one_error() -> None:
    assert pytest.approx(ERROR) == NO_BY_RANKS + 2 * NO_BY_OTHERS


@pytest.mark.parametrize("error", [NO_BY_RANKS, NO_BY_OTHERS])
def test_above_is_asked_at_the_whole_error_whatever_a_no_has(error: float) -> None:
    values = around(0.75, 2000, 0.25)
    wanted = first(values, 0.67, ERROR, above=True)
    assert wanted > TEXTS
    assert changes(values, 0.7, 0.03, error) == wanted


@pytest.mark.parametrize("tolerance", [0.01, 0.03, 0.05])
@pytest.mark.parametrize(("mean", "side"), [(0.701, "above"), (0.699, "below")])
def test_what_lies_within_the_tolerance_may_be_called_either(mean: float, side: str, tolerance: float) -> None:
    values = around(mean, 4000, 0.2)
    edge = 0.7 - tolerance if side == "above" else 0.7 + tolerance
    wanted = first(values, edge, ERROR if side == "above" else NO_BY_RANKS, side == "above")
    for n, said in ((wanted - 1, "open"), (wanted, side), (4000, side)):
        assert of(values[:, :n], tolerance=tolerance).side(WAYS[0], 0.7) == said
    strictly = of(values, tolerance=tolerance).side(WAYS[0], 0.7, strictly=True)
    assert strictly == "open"  # that specifications differ has no tolerance


@pytest.mark.parametrize(
    ("means", "settled"),
    [
        ((0.9, 0.8), True),
        ((0.6, 0.65), True),
        ((0.3, 0.2), True),
        ((0.9, 0.6, 0.3), True),
        ((0.9, around(0.7, 60, 0.3)), False),
        ((0.3, around(0.5, 60, 0.4)), False),
    ],
)
def test_it_is_settled_where_every_specification_lies_between_two_edges(
    means: tuple[float | Tensor, ...], settled: bool
) -> None:
    assert of(*means).is_settled == settled
    assert grading(values_of(*means)).is_settled == settled


def test_what_forbids_everything_needs_nothing_else() -> None:
    open_ = around(0.5, 60, 0.4)
    for name in ("reads", "carries"):
        found = grading(values_of(open_), **{name: values_of(0.05)})  # type: ignore[arg-type]
        assert found.is_settled
        assert grade(found) == "no"
    assert not Grading(of(), of(), of()).is_settled


@pytest.mark.parametrize(
    ("gamma", "reads", "texts", "settled"),
    [
        (0.2, 0.6, EARLY - 1, False),  # hardly
        (0.2, 0.6, EARLY, True),
        (0.6, 0.6, EARLY - 1, False),  # partly
        (0.6, 0.6, EARLY, True),
        (0.9, 0.6, 50, True),  # strong
        (0.2, 0.05, 50, True),  # not read
    ],
)
def test_less_than_strong_is_not_settled_by_the_first_texts(
    gamma: float, reads: float, texts: int, settled: bool
) -> None:
    """Where no more can be asked, it is said all the same."""
    of_texts = {WAYS[0]: around(gamma, texts)}
    found = grading(of_texts, reads={WAYS[0]: around(reads, texts)})
    assert found.is_settled == settled
    assert grade(found) == ("no" if reads < 0.25 or gamma < 0.5 else "partly" if gamma < 0.7 else "yes")


@pytest.mark.parametrize("name", ["reads", "carries"])
def test_where_weights_are_read_in_one_specification_only_nothing_is_said_of_grades(name: str) -> None:
    """Γ is high throughout: neither a Yes nor anything below it is known."""
    assert grade(grading(values_of(0.9, 0.9), **{name: values_of(0.6, 0.05)})) == "undecided"  # type: ignore[arg-type]
    assert grade(grading(values_of(0.6, 0.6), **{name: values_of(0.6, 0.05)})) == "at most partly"  # type: ignore[arg-type]


def test_one_of_many_that_fails_is_asked_at_the_error_divided_by_their_number() -> None:
    """Γ in two specifications: 5 % / 2."""
    values = around(0.6, 400, 0.4)
    wanted = first(values, 0.73, ERROR / 2, above=False)
    assert first(values, 0.73, NO_BY_RANKS, above=False) <= wanted
    for n in (wanted - 1, wanted):
        filled = values.clone()
        filled[:, n:] = torch.nan
        assert grading(values_of(0.9, filled)).ranks.any_below(0.7) == (n == wanted)


GENERATOR = torch.Generator().manual_seed(11)


def noisy(mean: float, n: int, spread: float = 0.25) -> Tensor:
    """Values of texts around a mean, skewed as Γ is, within [−1, 1]."""
    share, sharp = (mean + 1) / 2, 2 / spread**2
    a, b = (torch.full((n,), x * sharp, dtype=torch.float64) for x in (share, 1 - share))
    drawn = [torch._standard_gamma(x, generator=GENERATOR) for x in (a, b)]
    return (2 * drawn[0] / (drawn[0] + drawn[1]) - 1)[None]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_six_specifications_that_are_the_same_are_rarely_said_to_differ(shared: float) -> None:
    """All at .70, with noise of their own or of the texts: looked at as an audit does, until 300 texts."""
    runs, wrong = 200, 0
    for _ in range(runs):
        text, names = noisy(0.7, 300), [f"s{i}" for i in range(6)]
        every = {name: shared * text + (1 - shared) * noisy(0.7, 300) for name in names}
        wrong += any(
            grade_test(
                DecidingTest({name: values[:, :n] for name, values in every.items()}, {}, EDGES, 0.03)
            ).differing(0.7)
            is not None
            for n in look_points(300)
        )
    assert wrong <= ERROR * runs


def test_two_that_differ_are_named_and_those_that_lie_furthest_apart() -> None:
    found = of(0.9, 0.3, 0.45)
    assert found.differing(0.7) == (WAYS[0], WAYS[1])
    assert found.differing(0.5) == (WAYS[0], WAYS[1])
    assert of(0.9, 0.6).differing(0.7) == (WAYS[0], WAYS[1])
    assert of(0.9, 0.6).differing(0.5) is None
    assert of(0.9).differing(0.7) is None


def test_a_drawn_one_is_lower_only_by_more_than_its_draws_explain() -> None:
    """With few draws, noise hides a part of the order."""
    for short, differ in ((0.0, True), (0.15, True), (0.25, False)):
        test = DecidingTest(values_of(0.8, 0.6), {}, EDGES, 0.03, short={WAYS[1]: short})
        assert (grade_test(test).differing(0.7) is not None) == differ
    assert of(0.8, 0.6).differing(0.7) == grade_test(test._replace(short={WAYS[0]: 0.25})).differing(0.7)


def test_what_is_drawn_is_what_stands_in_a_words_place() -> None:
    for draws, asks in ((16, {"draws": 16}), (4, {"draws": 4}), (16, {})):
        study = STUDY.model_copy(update={"experiments": ({"name": "mediation", **asks},)})
        every = [asked(name, dict(values_of(0.9, 0.9))) for name in ("reads", "ranks", "carries")]
        (found,) = gradings(every, study).values()
        assert found.ranks.short == {WAYS[1]: SHORT / draws}
        assert not found.reads.short


def test_two_differ_only_where_the_same_texts_do() -> None:
    """Each is surely on its side of the edge, of texts that the other says nothing of."""
    one, other = around(0.9), around(0.3)
    one[:, ::2], other[:, 1::2] = torch.nan, torch.nan
    found = of(one, other)
    assert (found.side(WAYS[0], 0.7), found.side(WAYS[1], 0.7)) == ("above", "below")
    assert found.differing(0.7) is None
    assert found.outcome == "cannot tell"
    assert grade(grading({WAYS[0]: one, WAYS[1]: other})) == "at most partly"
    assert of(0.9, 0.3).outcome == "hangs on"


def test_too_few_texts_and_void_specifications_do_not_count() -> None:
    few = around(0.1)
    few[:, TEXTS - 1 :] = torch.nan
    found = of(0.9, few)
    assert list(found.bets) == [WAYS[0]]
    assert found.void == {WAYS[1]: f"39 texts say something, and a verdict needs {TEXTS}"}
    few[:, TEXTS - 1] = 0.1
    assert list(of(0.9, few).bets) == list(WAYS[:2])
    without = grade_test(DecidingTest(values_of(0.9, 0.1), {WAYS[1]: "why"}, EDGES))
    assert (list(without.bets), without.outcome, without.texts) == ([WAYS[0]], "holds", 400)
    assert [v.void for v in without.variants(WAYS[:2])] == ["", "why"]
    nothing = grade_test(DecidingTest(values_of(0.9), {WAYS[0]: "why"}, EDGES))
    assert (nothing.outcome, nothing.is_settled, nothing.texts) == ("cannot tell", False, 0)
    assert grade(grading(values_of(0.9), void={WAYS[0]: "why"})) == "undecided"


def test_a_variant_has_the_confidence_sequence_of_its_texts() -> None:
    values = around(0.6, 90, 0.3)
    (variant,) = of(values).variants(WAYS[:1])
    mean, low, high, n, _ = Bets(values[0]).interval(ERROR)
    assert (variant.statistic, variant.low, variant.high, variant.n) == (mean, low, high, n)
    assert variant.verdict == {"above": "holds", "below": "fails", "open": "cannot tell"}[of(values).side(WAYS[0], 0.7)]


def test_several_trainings_are_one_by_their_mean() -> None:
    seeds = torch.cat([around(0.9), around(0.5), around(0.7)])
    found = of(seeds)
    assert found.bets[WAYS[0]].mean == pytest.approx(0.7)
    assert len(found.bets[WAYS[0]].values) == 400


IDS = range(1000, 1120)


def made_up(void: int, of_the_first: int, texts: int) -> pl.DataFrame:
    """Attention's rows of so many texts, of which some are void: of the first 50 in their keyed order, and later."""
    order = [IDS[i] for i in keyed_order(torch.tensor(IDS).numpy()).tolist()]
    is_void = {*order[:of_the_first], *order[50 : 50 + void - of_the_first]}
    return pl.DataFrame(
        [
            {"split": "test", "seed": 0, "example": i, "removal": "delete", "company": "alone", "scale": "log-odds"}
            | {"method": "attention", "void": i in is_void, "ranks": place / 1000, "reads": 0.5}
            for place, i in enumerate(order)
            if place < texts
        ]
    ).sort("example")  # fmt: skip


@pytest.mark.parametrize(("first_void", "later", "counts"), [(25, 70, True), (26, 0, False), (24, 0, True)])
def test_which_specifications_count_is_fixed_at_the_first_look(first_void: int, later: int, counts: bool) -> None:
    name = specification_name("delete", "alone", "log-odds")
    for texts in (50, 75, 120):
        found = ranks(Evidence((made_up(first_void + later, first_void, texts),), (None,), 0.7))
        assert (name not in found.void) == counts
        assert list(found.values) == [name]
    if not counts:
        assert found.void[name] == "in 52% of the first texts no word matters enough to be ranked"


def test_texts_come_in_the_order_in_which_they_were_asked_and_void_ones_say_nothing() -> None:
    rows = made_up(10, 10, 120)
    (values,) = ranks(Evidence((rows,), (None,), 0.7)).values.values()
    assert values[0, :10].isnan().all()
    assert values[0, 10:].tolist() == [place / 1000 for place in range(10, 120)]
    (half,) = ranks(Evidence((made_up(10, 10, 60),), (None,), 0.7)).values.values()
    assert torch.equal(half[0, 10:], values[0, 10:60])  # the first of them stay the first
    assert values_in_order(rows, pl.col("reads")).tolist() == [[0.5] * 120]
    assert next(iter(reads(Evidence((rows,), (None,), 0.2)).values.values())).nanmean() == 0.5


STUDY = Study.model_validate(
    {"name": "s", "tasks": ["t"], "models": ["m"], "experiments": [{"name": "mediation", "tolerance": 0.1}]}
)


def asked(name: str, values: dict[str, Tensor]) -> Unjudged:
    return Unjudged(all_tests()[name], "t", "m", load_criteria()[name], Varied(values, {}, 0.0))


def test_the_judge_gives_every_test_its_edges_tolerance_and_error() -> None:
    every = [asked(name, dict(values_of(0.9))) for name in ("reads", "ranks", "carries")]
    for readings, error in ((False, NO_BY_RANKS), (True, NO_BY_RANKS - NO_BY_OTHERS)):
        (found,) = gradings(every, STUDY, readings).values()
        assert (found.ranks.edges, found.ranks.tolerance, found.ranks.no_error) == (EDGES, 0.1, error)
        assert (found.reads.edges, found.reads.tolerance, found.reads.no_error) == ((0.25,), 0.05, NO_BY_OTHERS)
        assert (found.carries.edges, found.carries.no_error) == ((0.2,), NO_BY_OTHERS)
        lows = [next(iter(test.bets.values())).low for test in found.tests]
        assert lows == [-1.0, -1.0, 0.0]
    (old,) = gradings(every[:2], STUDY).values()  # a run of before the third test
    assert not old.carries.bets
    assert grade(old) == "undecided"
    assert gradings(every[1:], STUDY) == {}


def test_a_line_of_the_scorecard_is_what_grades_say() -> None:
    every = [asked("reads", dict(values_of(0.6))), asked("ranks", dict(values_of(0.9, 0.3, 0.8)))]
    every.append(asked("carries", dict(values_of(around(0.2, 60, 0.2)))))
    lines = judge_tests(every, grades=gradings(every, STUDY))
    assert [line.verdict for line in lines] == ["holds", "hangs on", "cannot tell"]
    assert [line.settle for line in lines] == ["", "", "60 texts do not settle it: ask more of them with --texts."]
    for line, each in zip(lines, every, strict=True):
        shown = next(v for v in line.variants if v.name == line.against)
        assert (line.statistic, line.interval, line.n) == (shown.statistic, (shown.low, shown.high), shown.n)
        assert [v.name for v in line.variants] == list(each.measured.values)


def test_few_seeds_grade_nothing() -> None:
    twice = {WAYS[0]: around(0.9).expand(2, -1)}
    every = [asked(name, twice) for name in ("reads", "ranks", "carries")]
    (found,) = gradings(every, STUDY).values()
    assert not any(test.bets for test in found.tests)
    lines = judge_tests(every, grades=gradings(every, STUDY))
    assert {(line.verdict, line.doubt) for line in lines} == {
        ("cannot tell", "a claim about training needs 5 seeds or more; this has 2")
    }


def test_grades_never_go_back_as_more_texts_are_asked() -> None:
    """In a simulation of strong, partly and hardly: what is settled is settled by all that follows, or nearly all."""
    turned = 0
    for mean, _ in product((0.8, 0.6, 0.4), range(10)):
        values, before = noisy(mean, 300), ""
        for n in look_points(300):
            now = grade(replace(grading({WAYS[0]: values[:, :n]}), reads=of_sure(n), carries=of_sure(n)))
            turned += before in ("yes", "partly", "no") and now != before
            before = now
        assert before == {0.8: "yes", 0.6: "partly", 0.4: "no"}[mean]
    assert turned == 0


def of_sure(n: int) -> Graded:
    return grade_test(DecidingTest({WAYS[0]: around(0.6, n)}, {}, (0.25,), 0.05, math.nan))
