"""Counting answers against truths: by hand, and at thresholds that were left to other families."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from exegete.answers.criteria import load_criteria
from exegete.wings.calibration.count import (
    ALL,
    ANSWERS,
    EXCLUDED_BY,
    SETTLED_BY,
    all_pass,
    count_draws,
    cross_table,
    error_bound,
    excludes,
    settles,
    summarise_counts,
)
from exegete.wings.calibration.thresholds import answer_at, leave_one_family_out


def draws(*lines: tuple[str, str, str, int]) -> pl.DataFrame:
    """Family, truth, answer and how often."""
    rows = [("quick", f, t, t, a) for f, t, a, often in lines for _ in range(often)]
    return pl.DataFrame(rows, ["audit", "family", "known", "truth", "answer"], orient="row")


def test_answers_are_counted_by_family_and_together() -> None:
    table = count_draws(
        draws(("a", "strong", "yes", 40), ("a", "strong", "yes by size", 15), ("a", "strong", "about strong", 4),
              ("a", "strong", "no", 1), ("a", "between", "undecided", 3), ("b", "flat", "no", 58),
              ("b", "hardly", "yes", 2))
    )  # fmt: skip
    columns = ["family", "n", "between", "yes", "yes by size", "no", "about strong", "right", "wrong", "open", "passes"]
    assert table.select(columns).rows() == [
        ("a", 60, 3, 40, 15, 1, 4, 55, 1, 4, True),
        ("b", 60, 0, 2, 0, 58, 0, 58, 2, 0, False),  # two false alarms
        (ALL, 120, 3, 42, 15, 59, 4, 113, 3, 4, False),  # may be 6.4 %
    ]
    assert not all_pass(table)
    assert summarise_counts(table)["wrong"] == 3


YES = {"yes", "yes by size", "yes as"}
AT_EDGES = {"about partly": ("hardly", "partly"), "about strong": ("partly", "strong")}
SPANS = {  # the grades that an answer leaves open, where specifications agree
    **{answer: {"strong"} for answer in YES}, "partly": {"partly"}, "no": {"hardly"},
    "undecided": {"hardly", "partly", "strong"},
    "at least partly": {"partly", "strong"},
    "at most partly": {"hardly", "partly"}, **{answer: set(grades) for answer, grades in AT_EDGES.items()},
    "partly to strongly": set(), "hardly to partly": set(), "hardly to strongly": set(),
}  # fmt: skip


@pytest.mark.parametrize("truth", ["hardly", "partly", "strong"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_wrong_where_it_leaves_the_grade_no_room(answer: str, truth: str) -> None:
    """Of one grade in all specifications, every answer is a set of grades: wrong without it, right with it alone."""
    assert excludes(answer, truth) == (truth not in SPANS[answer])
    assert settles(answer, truth) == (SPANS[answer] == {truth})


@pytest.mark.parametrize("truth", ["unread", "flat"])
def test_what_is_not_read_must_not_be_said_to_be_partly_so(truth: str) -> None:
    wrong = {answer for answer in ANSWERS if excludes(answer, truth)}
    assert wrong == YES | {"partly", "at least partly", "about strong", "partly to strongly"}
    assert [answer for answer in ANSWERS if settles(answer, truth)] == ["no"]


def test_no_answer_is_both_and_none_is_wrong_between() -> None:
    for truth in EXCLUDED_BY:
        assert not set(EXCLUDED_BY[truth]) & set(SETTLED_BY[truth])
        assert set(EXCLUDED_BY[truth]) | set(SETTLED_BY[truth]) <= set(ANSWERS)
    assert not any(excludes(answer, "between") or settles(answer, "between") for answer in ANSWERS)


def test_an_answer_that_nobody_gives_is_refused() -> None:
    with pytest.raises(ValueError, match="maybe"):
        excludes("maybe", "strong")
    with pytest.raises(ValueError, match="maybe"):
        settles("maybe", "strong")


@pytest.mark.parametrize(("right", "wrong", "fine"), [(60, 0, True), (54, 0, True), (53, 0, False), (59, 1, True)])
def test_a_family_passes_with_54_of_60_and_one_false_alarm(right: int, wrong: int, fine: bool) -> None:
    open_ = 60 - right - wrong
    table = count_draws(
        draws(("a", "flat", "no", right), ("a", "flat", "yes", wrong), ("a", "flat", "undecided", open_))
    )
    assert table["passes"][0] == fine


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_bounds_are_exact_and_one_sided(counts: tuple[int, int]) -> None:
    theirs = binomtest(*counts, alternative="less").proportion_ci(0.95, method="exact")
    assert error_bound(*counts) == pytest.approx(theirs.high, abs=1e-9)


def test_truth_and_answer_are_crossed() -> None:
    table = cross_table(draws(("a", "strong", "yes", 2), ("b", "strong", "no", 1), ("c", "flat", "undecided", 3)))
    assert table.select("truth", "n", "yes", "no", "undecided").rows() == [("flat", 3, 0, 0, 3), ("strong", 3, 2, 1, 0)]


def line(
    family: str, truth: str, reads: float, ranks: float, carries: float = 0.9, wide: float = 0.02
) -> dict[str, object]:
    """A draw with one specification: intervals of a width, in a quick audit, whose tolerance is .05."""

    def ends(mean: float) -> list[float]:
        return [mean, mean - wide, mean + wide]

    numbers = {"reads": reads, "ranks": ranks, "carries": carries}
    own = {name: {"delete": ends(mean)} for name, mean in numbers.items()}
    return {"audit": "quick", "family": family, "truth": truth, "ends": own}


OURS = (0.25, 0.2, 0.7)  # M, F, Γ


def said(draw: dict[str, object], at: tuple[float, float, float] = OURS, tolerance: float = 0.05) -> str:
    return answer_at(draw, at, 0.5, tolerance)


@pytest.mark.parametrize(
    ("reads", "carries", "ranks", "answer"),
    [
        (0.9, 0.9, 0.9, "yes"),
        (0.1, 0.9, 0.9, "no"),
        (0.9, 0.1, 0.9, "no"),
        (0.9, 0.9, 0.4, "no"),
        (0.9, 0.9, 0.6, "partly"),
        (0.9, 0.9, 0.71, "yes"),
        (0.9, 0.9, 0.69, "partly"),
        (0.27, 0.9, 0.9, "yes"),
    ],
)
def test_answers_at_our_thresholds(reads: float, carries: float, ranks: float, answer: str) -> None:
    assert said(line("a", "strong", reads, ranks, carries)) == answer


def test_what_lies_across_an_edge_is_open() -> None:
    """Intervals that are wider than the tolerance on the far side of an edge."""
    assert said(line("a", "strong", 0.9, 0.71, wide=0.1)) == "undecided"
    assert said(line("a", "strong", 0.27, 0.9, wide=0.1)) == "undecided"
    assert said(line("a", "strong", 0.9, 0.9, 0.18, wide=0.1)) == "undecided"
    assert said(line("a", "strong", 0.9, 0.71), tolerance=0.005) == "undecided"


def test_all_specifications_must_agree() -> None:
    one, other = line("a", "strong", 0.9, 0.9), line("a", "strong", 0.9, 0.3)
    one["ends"]["ranks"]["resample"] = other["ends"]["ranks"]["delete"]  # type: ignore[index]
    assert said(one) == "undecided"
    assert said(one, (0.25, 0.2, 0.25)) == "yes"


def test_families_choose_thresholds_for_the_one_that_is_left_out() -> None:
    """Unread models at M = .3 would be called yes at .25: who has them chooses a higher threshold for the others."""
    lines = [line(f, "strong", 0.9, 0.95) for f in "ab" for _ in range(3)]
    lines += [line("c", "unread", 0.31, 0.9, wide=0.01) for _ in range(3)]
    found = {row["family"]: row for row in leave_one_family_out(lines, load_criteria()).to_dicts()}
    assert (found["c"]["reads"], found["c"]["wrong"], found["c"]["wrong_at_ours"]) == (0.25, 3, 3)
    assert found["a"]["reads"] > 0.3
    assert (found["a"]["right"], found["a"]["wrong"]) == (3, 0)


def test_flat_models_choose_the_threshold_of_f() -> None:
    lines = [line(f, "strong", 0.9, 0.95) for f in "ab" for _ in range(3)]
    lines += [line("c", "flat", 0.9, 0.9, 0.28, wide=0.01) for _ in range(3)]
    found = {row["family"]: row for row in leave_one_family_out(lines, load_criteria()).to_dicts()}
    assert (found["c"]["carries"], found["c"]["wrong"]) == (0.2, 3)
    assert (found["a"]["carries"], found["a"]["wrong"]) == (0.3, 0)
