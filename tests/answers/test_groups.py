"""What stands beside the grade: shares by hand, the word that is a sink, groups that are surely apart."""

import math
from typing import Any

import polars as pl
import pytest

from exegete.answers.groups import BesideGrade, Group, grade_groups
from exegete.answers.rules import ERROR
from exegete.experiments.mediation.statistics import specification_name
from exegete.measures.betting import Bets
from exegete.tasks.selection import keyed_order

WAYS = [("delete", "alone", "log-odds"), ("resample", "company", "log-odds")]
NAMES = [specification_name(*way) for way in WAYS]
N = 120


def rows(**columns: Any) -> pl.DataFrame:
    """Attention's rows of test texts in two specifications; a callable column is computed from text and way."""
    fixed = {
        "n": 8, "predicted": "good", "void": False, "ranks": 0.6, "ranks_active": 0.7, "opposed": 0.1, "idle": 0.3,
        "idle_place": 0.0, "idle_word": "the", "reads": 0.5, "carries": 0.5, "locates": 0.5, "ceiling": 0.9,
    }  # fmt: skip
    found = [
        {"split": "test", "seed": 0, "example": i, "method": "attention"}
        | dict(zip(("removal", "company", "scale"), way, strict=True))
        | {name: of(i, place) if callable(of) else of for name, of in (fixed | columns).items()}
        for place, way in enumerate(WAYS)
        for i in range(N)
    ]
    return pl.DataFrame(found, infer_schema_length=None)


def test_shares_are_means_over_the_specifications_that_count() -> None:
    frame = rows(idle=lambda i, way: 0.2 + 0.2 * way + 0.001 * i, opposed=lambda i, way: 0.5 * way)
    own = grade_groups(frame, NAMES)
    assert own.idle == pytest.approx(0.3 + 0.001 * (N - 1) / 2)
    assert own.opposed == pytest.approx(0.25)
    assert own.active == pytest.approx(0.7)
    assert own.void == 0
    assert grade_groups(frame, NAMES[:1]).opposed == 0


def test_a_text_is_void_where_no_word_matters_in_any_specification() -> None:
    frame = rows(void=lambda i, way: i < 30 or (i < 60 and way == 0), ranks=lambda i, way: 0.9 if i < 30 else 0.6)
    own = grade_groups(frame, NAMES)
    assert own.void == pytest.approx(30 / N)
    assert sum(group.n for group in own.classes) == N - 30
    assert own.classes[0].mean == pytest.approx(0.6)  # void texts say nothing


@pytest.mark.parametrize(
    ("place", "word", "said"),
    [
        (0.0, lambda i, _: f"w{i}", "the first word"),
        (7.0, lambda i, _: f"w{i}", "the last word"),
        (3.0, "the", "'the'"),
        (lambda i, _: float(i % 8), "the", "'the'"),
        (lambda i, _: float(i % 8), lambda i, _: f"w{i % 5}", ""),
        (lambda i, _: 0.0 if i < 60 else None, lambda i, _: "the" if i < 60 else None, "the first word"),
        (None, None, ""),
    ],
)
def test_the_sink_is_called_by_its_place_or_by_itself(place: Any, word: Any, said: str) -> None:
    frame = rows(idle_place=place, idle_word=word)
    frame = frame.with_columns(pl.col("idle_place").cast(pl.Float64), pl.col("idle_word").cast(pl.String))
    assert grade_groups(frame, NAMES).idle_is == said


def test_groups_have_the_sequences_of_their_texts_at_the_error_divided_by_their_number() -> None:
    frame = rows(
        predicted=lambda i, _: "good" if i % 2 else "bad",
        ranks=lambda i, _: (0.9 if i % 2 else 0.5) + 0.01 * math.sin(i),
    )
    bad, good = grade_groups(frame, NAMES).classes
    order = [i for i in keyed_order(pl.Series(range(N)).to_numpy(writable=True)).tolist() if i % 2]
    values = pl.Series([0.9 + 0.01 * math.sin(i) for i in order]).to_torch()
    wanted = Bets(values).interval(ERROR / 2)
    assert good[1:] == pytest.approx((wanted.mean, wanted.low, wanted.high, 60))
    assert (bad.name, good.name) == ("bad", "good")
    assert bad.mean == pytest.approx(0.5, abs=0.01)


def test_groups_that_are_too_small_are_none() -> None:
    frame = rows(predicted=lambda i, _: "rare" if i < 39 else "good")
    assert [group.name for group in grade_groups(frame, NAMES).classes] == ["good"]


def test_lengths_are_thirds() -> None:
    frame = rows(n=lambda i, _: 4 + i, ranks=lambda i, _: 0.9 if i < 40 else 0.5)
    lengths = {group.name: group for group in grade_groups(frame, NAMES).lengths}
    assert {name: group.n for name, group in lengths.items()} == {"short": 40, "medium": 40, "long": 40}
    assert lengths["short"].mean == pytest.approx(0.9)
    assert [group.name for group in grade_groups(rows(), NAMES).lengths] == ["short"]  # all are as long


@pytest.mark.parametrize(
    ("groups", "edges", "names"),
    [
        ([(0.4, 0.45), (0.75, 0.8)], (0.7, 0.5), ("a", "b")),
        ([(0.75, 0.8), (0.55, 0.6)], (0.7, 0.5), ("b", "a")),
        ([(0.55, 0.6), (0.4, 0.45)], (0.7, 0.5), ("b", "a")),
        ([(0.4, 0.55), (0.6, 0.8)], (0.7, 0.5), None),  # either may lie on both sides of an edge
        ([(0.4, 0.45), (0.3, 0.35)], (0.7, 0.5), None),
        ([(0.4, 0.45)], (0.7, 0.5), None),
        ([(0.6, 0.65), (0.8, 0.9), (0.3, 0.4)], (0.7,), ("c", "b")),
        ([(0.4, 0.45), (0.75, 0.8)], (), None),
    ],
)
def test_two_classes_are_apart_where_an_edge_surely_lies_between(
    groups: list[tuple[float, float]], edges: tuple[float, ...], names: tuple[str, str] | None
) -> None:
    classes = tuple(Group(name, sum(ends) / 2, *ends, 60) for name, ends in zip("abc", groups, strict=False))
    pair = BesideGrade(classes=classes).apart(edges)
    assert (None if pair is None else (pair[0].name, pair[1].name)) == names


def test_older_runs_and_runs_without_texts_have_less() -> None:
    assert grade_groups(rows().drop("idle"), NAMES) == BesideGrade()
    assert grade_groups(rows(), []) == BesideGrade()
    nothing = grade_groups(rows(void=True), NAMES)
    assert (nothing.void, nothing.idle, nothing.classes, nothing.lengths) == (1.0, 0.0, (), ())
