"""Alignment error rate by hand, against its formula, and its interval written slowly."""

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.measures.alignment import (
    agreement,
    alignment_counts,
    alignment_error_rate,
    alignment_precision,
    alignment_recall,
    gold_places,
)
from exegete.tasks.catalogue import load_task
from exegete.tasks.example import Link

Places = set[tuple[int, int]]
places = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)
sentences = st.lists(st.tuples(places, places, places), min_size=1, max_size=5)


def slow(corpus: list[tuple[Places, Places, Places]]) -> tuple[float, float, float]:
    """AER, precision and recall of Och & Ney (2003), equations 21 to 23, with lists and loops."""
    a_s = sum(link in s for a, s, _ in corpus for link in a)
    a_p = sum(link in p for a, _, p in corpus for link in a)
    a, s = sum(len(a) for a, _, _ in corpus), sum(len(s) for _, s, _ in corpus)
    return (
        1 - (a_s + a_p) / (a + s) if a + s else math.nan,
        a_p / a if a else math.nan,
        a_s / s if s else math.nan,
    )


def test_by_hand() -> None:
    sure, possible = gold_places([Link(0, 0), Link(1, 2), Link(2, 1, sure=False)])
    assert (set(sure), set(possible)) == ({(0, 0), (1, 2)}, {(0, 0), (1, 2), (2, 1)})
    counts = alignment_counts([{(0, 0), (2, 1), (2, 2)}], [sure], [possible])
    assert counts.tolist() == [[1, 2, 3, 2]]
    assert alignment_error_rate(counts).item() == pytest.approx(1 - 3 / 5)
    assert alignment_precision(counts).item() == pytest.approx(2 / 3)
    assert alignment_recall(counts).item() == pytest.approx(1 / 2)


@given(sentences)
@settings(max_examples=50, deadline=None)
def test_the_formula(drawn: list[tuple[Places, Places, Places]]) -> None:
    corpus = [(a, s, p | s) for a, s, p in drawn]
    counts = alignment_counts(*zip(*corpus, strict=True)).sum(0)
    ours = [f(counts).item() for f in (alignment_error_rate, alignment_precision, alignment_recall)]
    assert ours == pytest.approx(slow(corpus), abs=1e-12, nan_ok=True)
    assert math.isnan(ours[0]) or 0 <= ours[0] <= 1
    found = agreement(alignment_counts(*zip(*corpus, strict=True)), draws=20)
    assert [x.mean for x in found] == pytest.approx(ours, nan_ok=True)
    assert [x.undefined for x in found] == [len(corpus) * math.isnan(x) for x in ours]


def test_all_right_is_0_and_all_wrong_is_1() -> None:
    gold: list[Places] = [{(0, 0), (1, 1)}]
    assert alignment_error_rate(alignment_counts(gold, gold, gold)).item() == 0
    assert alignment_error_rate(alignment_counts([{(0, 1)}], gold, gold)).item() == 1
    more: list[Places] = [{(0, 0), (1, 1), (2, 2)}]
    assert alignment_error_rate(alignment_counts(more, gold, more)).item() == 0  # possible links cost nothing


def test_the_gold_of_the_toy_language_agrees_with_itself() -> None:
    task = load_task("toy_translation:train=10,dev=10,test=60")
    gold = [gold_places(task.alignments["test"][e.id]) for e in task.split("test")]
    sure, possible = ([set(x) for x in side] for side in zip(*gold, strict=True))
    assert agreement(alignment_counts(sure, sure, possible), draws=20).error_rate[:4] == (0, 0, 0, 60)
    assert any(p > s for s, p in zip(sure, possible, strict=True))
    diagonal = [{(i, i) for i in range(len(e.texts[1]))} for e in task.split("test")]
    assert agreement(alignment_counts(diagonal, sure, possible), draws=20).error_rate.low > 0.5


def test_the_interval_is_that_of_resampled_sentences() -> None:
    draw = random.Random(0)
    corpus = []
    for _ in range(30):
        gold = {(i, draw.randrange(6)) for i in range(6)}
        corpus.append(({(i, draw.randrange(6)) if draw.random() < 0.4 else (i, j) for i, j in gold}, gold, gold))
    found = agreement(alignment_counts(*zip(*corpus, strict=True)), draws=200)
    picked = torch.randint(30, (200, 30), generator=torch.Generator().manual_seed(0)).tolist()
    drawn = sorted(slow([corpus[i] for i in some])[0] for some in picked)
    assert found.error_rate.low == pytest.approx(drawn[4] + 0.975 * (drawn[5] - drawn[4]), abs=1e-9)
    assert found.error_rate.high == pytest.approx(drawn[194] + 0.025 * (drawn[195] - drawn[194]), abs=1e-9)
    assert found.error_rate.n == 30


def test_what_is_sure_must_be_possible() -> None:
    with pytest.raises(ValueError, match=r"what is sure is possible too: in sentence 1 \(2, 2\) is only sure"):
        alignment_counts([set(), set()], [set(), {(0, 0), (2, 2)}], [set(), {(0, 0)}])
    with pytest.raises(ValueError, match="not 1, 2 and 1 sentences"):
        alignment_counts([set()], [set(), set()], [set()])


def test_no_sentences() -> None:
    found = agreement(alignment_counts([], [], []))
    assert [(math.isnan(x.mean), x.n) for x in found] == [(True, 0)] * 3
