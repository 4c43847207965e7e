"""Plausibility: average precision against scikit-learn, F1 over all orders of ties, spans by slow loops."""

import math
import random
from itertools import groupby, pairwise, permutations

import pytest
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from exegete.measures.plausibility import (
    auprc,
    auprc_chance,
    iou_f1,
    iou_f1_chance,
    precision_at,
    precision_chance,
    token_f1,
    token_f1_chance,
    top,
)

NAN = math.nan


def cases(count: int, longest: int = 7, values: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random texts with many ties, and random marks, padded; every text has words with and without mark."""
    draw = random.Random(seed)
    scores, marked = torch.full((count, longest), NAN, dtype=torch.float64), torch.zeros(count, longest).bool()
    for row in range(count):
        n = draw.randint(2, longest)
        scores[row, :n] = torch.tensor([float(draw.randint(-values, values)) for _ in range(n)])
        marked[row, draw.sample(range(n), draw.randint(1, n - 1))] = True
    return scores, marked


def each(scores: Tensor, marked: Tensor) -> list[tuple[list[float], list[bool]]]:
    lengths = (~scores.isnan()).sum(1).tolist()
    return [(s[:n].tolist(), m[:n].tolist()) for s, m, n in zip(scores, marked, lengths, strict=True)]


def orders(scores: list[float]) -> list[list[int]]:
    """All rankings that the scores allow: those of ties in every order."""
    return [
        list(p) for p in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(p))
    ]  # fmt: skip


def test_auprc_is_average_precision() -> None:
    scores, marked = cases(60, longest=30)
    expected = [average_precision_score(m, s) for s, m in each(scores, marked)]
    assert auprc(scores, marked).tolist() == pytest.approx(expected)


def test_precision_and_token_f1_over_all_orders_of_ties() -> None:
    scores, marked = cases(25, longest=6, values=1)
    for k in (1, 2, 4):
        precision, f1 = precision_at(scores, marked, k), token_f1(scores, marked, k)
        for row, (s, m) in enumerate(each(scores, marked)):
            size = min(k, len(s))
            hits = [sum(m[i] for i in order[:size]) for order in orders(s)]
            mean = sum(hits) / len(hits)
            assert precision[row] == pytest.approx(mean / size)
            assert f1[row] == pytest.approx(2 * mean / (size + sum(m)))


def slow_spans(chosen: list[bool]) -> list[set[int]]:
    runs = groupby(enumerate(chosen), key=lambda pair: pair[1])
    return [{i for i, _ in run} for inside, run in runs if inside]


def slow_iou_f1(chosen: list[bool], marked: list[bool]) -> float:
    """ERASER: precision and recall over spans; a predicted span is right if its best IoU with a gold one is > 0.5."""
    predicted, gold = slow_spans(chosen), slow_spans(marked)
    right = sum(max(len(p & g) / len(p | g) for g in gold) > 0.5 for p in predicted)
    found = sum(max(len(p & g) / len(p | g) for p in predicted) > 0.5 for g in gold)
    precision, recall = right / len(predicted), found / len(gold)
    return 2 * precision * recall / (precision + recall) if right else 0.0


def test_iou_f1_by_loops() -> None:
    scores, marked = cases(200, longest=12, values=50, seed=1)
    ids, k = torch.arange(200), torch.randint(1, 9, (200,), generator=torch.Generator().manual_seed(0))
    chosen = top(scores, k, ids)
    found = iou_f1(scores, marked, k, ids)
    lengths = (~scores.isnan()).sum(1).tolist()
    expected = [
        slow_iou_f1(c[:n].tolist(), m[:n].tolist()) for c, m, n in zip(chosen, marked, lengths, strict=True)
    ]  # fmt: skip
    assert 40 < sum(value > 0 for value in expected) < 160
    assert found.tolist() == pytest.approx(expected)


def test_an_overlap_of_one_half_is_not_enough() -> None:
    scores = torch.tensor([[3.0, 2.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]])
    marked = torch.tensor([[True, False, False, False], [True, True, True, False]])
    assert iou_f1(scores, marked, 2, torch.arange(2)).tolist() == [0.0, 1.0]  # 1/2 and 2/3


def test_spans_do_not_run_on_into_the_next_text() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert iou_f1(scores, scores > 0, 1, torch.arange(2)).tolist() == [1.0, 1.0]


def test_the_top_is_one_of_the_orders_and_keyed_by_the_text() -> None:
    scores, _ = cases(30, values=1)
    ids = torch.arange(100, 130)
    chosen = top(scores, 3, ids)
    for row, (s, _) in enumerate(each(scores, scores > 9)):
        picked = {i for i, inside in enumerate(chosen[row].tolist()) if inside}
        assert any(picked == set(order[:3]) for order in orders(s))
    alone = torch.cat([top(scores[i : i + 1], 3, ids[i : i + 1]) for i in range(30)])
    wider = top(torch.nn.functional.pad(scores, (0, 5), value=NAN), 3, ids)[:, : scores.shape[1]]
    assert torch.equal(chosen, alone)
    assert torch.equal(chosen, wider)
    assert not torch.equal(chosen, top(scores, 3, ids + 1))


def test_chance_is_the_mean_over_all_orders() -> None:
    """Every shuffle of the scores, ties included, with the marks where they are."""
    scores = torch.tensor([[0.0, 0.0, 3.0, 1.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]], dtype=torch.float64)
    marked = torch.tensor([[True, False, False, True, False], [False, True, True, True, False]])
    for row in range(2):
        shuffles = scores[row, torch.tensor(list(permutations(range(5))))]
        marks = marked[row].expand_as(shuffles)
        one = scores[row : row + 1], marked[row : row + 1]
        assert auprc_chance(*one).item() == pytest.approx(auprc(shuffles, marks).mean().item())
        assert token_f1_chance(*one, 2).item() == pytest.approx(token_f1(shuffles, marks, 2).mean().item())
        assert precision_chance(*one).item() == pytest.approx(precision_at(shuffles, marks, 1).mean().item())


def test_chance_of_iou_is_the_mean_over_all_selections() -> None:
    marked = torch.tensor([[True, True, False, False, False, False]])
    shuffles = torch.tensor(list(permutations(range(6))), dtype=torch.float64)
    exact = iou_f1(shuffles, marked.expand_as(shuffles), 2, torch.arange(len(shuffles))).mean().item()
    many = marked.expand(4000, -1)
    drawn = iou_f1_chance(many, torch.ones_like(many), 2, torch.arange(4000), draws=10)
    assert drawn.mean().item() == pytest.approx(exact, abs=0.004)


@pytest.mark.parametrize("marks", [[False, False, False], [True, True, True]])
def test_no_mark_or_only_marks_are_undefined(marks: list[bool]) -> None:
    scores, marked = torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([marks])
    ids = torch.tensor([0])
    values = [
        precision_at(scores, marked, 1),
        token_f1(scores, marked, 1),
        auprc(scores, marked),
        iou_f1(scores, marked, 1, ids),
        precision_chance(scores, marked),
        token_f1_chance(scores, marked, 1),
        auprc_chance(scores, marked),
        iou_f1_chance(marked, ~scores.isnan(), 1, ids),
    ]
    assert all(value.isnan().all() for value in values)


def test_marks_beyond_the_words_are_refused() -> None:
    with pytest.raises(ValueError, match="only words are marked"):
        auprc(torch.tensor([[1.0, 2.0, NAN]]), torch.tensor([[True, False, True]]))


def test_perfect_and_worst() -> None:
    scores = torch.tensor([[4.0, 3.0, 2.0, 1.0]])
    best, worst = torch.tensor([[True, True, False, False]]), torch.tensor([[False, False, True, True]])
    ids = torch.tensor([0])
    for marked, value in ((best, 1.0), (worst, 0.0)):
        assert token_f1(scores, marked, 2).item() == iou_f1(scores, marked, 2, ids).item() == value
    assert auprc(scores, best).item() == 1
    assert auprc(scores, worst).item() == pytest.approx((1 / 3 + 2 / 4) / 2)
