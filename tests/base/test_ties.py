"""Ties: levels by a plain loop, whatever the order of the items; what rounding moves, it moves nowhere."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.base.noise import uniform
from exegete.base.ties import ROUNDING, levels
from exegete.experiments.common.side_by_side import see_texts
from exegete.measures.rank import kendall, spearman
from exegete.measures.topk import bucket, fagin, legacy
from exegete.tasks.example import Example
from tests.other_cpu import OtherCPU
from tests.small import small_model, texts

scores = st.lists(st.integers(-40, 40), min_size=1, max_size=9)


def slow(row: list[float]) -> list[float]:
    """One step after the other."""
    weights = min(row) > 0 and abs(sum(row) - 1) < 1e-4
    level, ordered = {}, sorted(set(row))
    level[ordered[0]] = 0.0
    for lower, higher in pairwise(ordered):
        near = 4e-5 * (higher if weights else max(map(abs, row)))
        level[higher] = level[lower] + (higher - lower > near)
    return [level[value] for value in row]


def moved(rows: Tensor, by: float, seed: int = 0) -> Tensor:
    """Rows with noise of up to a share of their largest score, or, of weights, of every weight."""
    noise = 2 * uniform(seed, torch.arange(rows.shape[0])[:, None], torch.arange(rows.shape[1])) - 1
    weights = (rows > 0).all(1, keepdim=True) & ((rows.sum(1, keepdim=True) - 1).abs() < 1e-4)
    return rows + by * noise * torch.where(weights, rows, rows.abs().amax(1, keepdim=True))


def coefficients(a: Tensor, b: Tensor) -> list[Tensor]:
    """All that rank."""
    return [*kendall(a, b), spearman(a, b), *(measure(a, b, 3) for measure in (fagin, bucket, legacy))]


@given(scores, st.sampled_from([1.0, 1e-5, 3e-5, 1e-3]))
@settings(deadline=None)
def test_levels_are_the_plain_loop(row: list[int], unit: float) -> None:
    made = [value + unit * place for place, value in enumerate(row)]  # steps about as wide as rounding, and wider ones
    assert levels(torch.tensor([made], dtype=torch.float64)).tolist() == [slow(made)]


@given(st.lists(st.floats(0, 40), min_size=2, max_size=9))
@settings(deadline=None)
def test_weights_are_held_against_themselves(row: list[float]) -> None:
    weights = torch.tensor([row], dtype=torch.float64).neg().softmax(-1)
    assert levels(weights).tolist() == [slow(weights[0].tolist())]


def test_small_weights_have_an_order_and_small_scores_have_none() -> None:
    peaked = torch.tensor([1 - 3e-6, 2e-6, 1e-6], dtype=torch.float64)
    assert levels(peaked).tolist() == [2, 1, 0]
    assert levels(2 * peaked).tolist() == [1, 0, 0]  # these are no shares of a whole
    assert levels(peaked - 1).tolist() == [1, 0, 0]
    sparse = torch.tensor([1 - 3e-6, 3e-6, 0], dtype=torch.float64)  # what a threshold left is as uncertain as that is
    assert levels(sparse).tolist() == [1, 0, 0]


def test_steps_are_chained_and_signs_are_kept() -> None:
    step = 0.9 * ROUNDING
    chain = torch.tensor([1.0, 1 - step, 1 - 2 * step, 0.0, -1.0, 1e-6, -1e-6], dtype=torch.float64)
    assert levels(chain).tolist() == [2, 2, 2, 1, 0, 1, 1]


def test_what_is_no_item_and_what_is_infinite() -> None:
    nan, inf = math.nan, math.inf
    found = levels(torch.tensor([[nan, 2.0, inf, -inf, 1.0, inf], [nan] * 6, [0.0] * 6], dtype=torch.float64))
    assert found[0, 1:].tolist() == [2, 3, 0, 1, 3]
    assert found[0, 0].isnan()
    assert found[1].isnan().all()
    assert found[2].tolist() == [0] * 6
    assert levels(torch.zeros(3, 0)).shape == (3, 0)
    assert levels(torch.zeros(0, 3)).shape == (0, 3)
    assert levels(torch.rand(2, 3, 4)).shape == (2, 3, 4)


@given(scores)
@settings(deadline=None)
def test_the_order_of_the_items_does_not_matter(row: list[int]) -> None:
    made = torch.tensor([row], dtype=torch.float64) * 1e-5
    order = torch.randperm(len(row), generator=torch.Generator().manual_seed(hash(tuple(row)) % 1000))
    assert torch.equal(levels(made[:, order]), levels(made)[:, order])


@pytest.mark.parametrize("weights", [False, True])
def test_noise_below_the_tolerance_changes_nothing(weights: bool) -> None:
    """Of rows whose steps are 0 or clear, τ and the top-k coefficients too: equal to the bit."""
    rows = torch.randint(-6, 7, (40, 12), generator=torch.Generator().manual_seed(3)).double()
    others = rows.roll(1, 0)
    rows = rows.softmax(-1) if weights else rows
    noisy = moved(rows, ROUNDING / 4)
    assert not torch.equal(noisy, rows)
    assert torch.equal(levels(noisy), levels(rows))
    for before, after in zip(coefficients(rows, others), coefficients(noisy, others), strict=True):
        assert torch.equal(before.nan_to_num(), after.nan_to_num())


@pytest.mark.parametrize("spec", ["average:size=5,hidden=6,scale=1", "bilstm:size=5,hidden=6,scale=1"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_repeated_words_tie_alone_in_a_batch_and_on_another_cpu(spec: str, seed: int) -> None:
    """In `average` a word and its repetition have the same weight: τ must see them tied, whoever computed it."""
    examples = tuple(Example(e.id, (e.words * 2,), e.label) for e in texts(12, seed=3))
    one, other = small_model(spec, examples), small_model(spec.replace("hidden=6", "hidden=4"), examples)
    whole = kendall(*(see_texts(model, examples).key_weights for model in (one, other)))
    with OtherCPU(seed):
        elsewhere = kendall(*(see_texts(model, examples).key_weights for model in (one, other)))
    for row, e in enumerate(examples):
        alone = kendall(*(see_texts(model, (e,)).key_weights for model in (one, other)))
        for found, again, single in zip(whole, elsewhere, alone, strict=True):
            assert found[row].item() == pytest.approx(single.item(), nan_ok=True, abs=1e-12)
            assert found[row].item() == pytest.approx(again[row].item(), nan_ok=True, abs=1e-12)
    if spec.startswith("average"):
        weights = levels(see_texts(one, examples).key_weights)
        for row, e in zip(weights, examples, strict=True):
            assert torch.equal(row[: len(e) // 2], row[len(e) // 2 : len(e)])
