"""AUC and its interval: against pairs counted one by one, and by how often it misses."""

import math

import pytest
import torch
from torch import Tensor

from exegete.measures.proportions import clopper_pearson
from exegete.measures.roc import auc_interval
from exegete.training.metrics import auc


def drawn(n: int, rare: float, apart: float, seed: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    """Logits whose class has `apart` more, and classes of which the others are each `rare`."""
    noise = torch.Generator().manual_seed(seed)
    label = (torch.rand(n, generator=noise) < rare * (classes - 1)).long()
    label *= torch.randint(1, classes, (n,), generator=noise)
    logits = torch.randn(n, classes, generator=noise, dtype=torch.float64)
    return logits + apart * torch.nn.functional.one_hot(label, classes), label


def slow(score: Tensor, positive: Tensor) -> tuple[float, float]:
    """The area and its variance, from all pairs."""
    wins = [[1.0 if a > b else 0.5 if a == b else 0.0 for b in score[~positive]] for a in score[positive]]
    p, n = len(wins), len(wins[0])
    area = sum(map(sum, wins)) / (p * n)
    of_positives = sum((sum(row) / n - area) ** 2 for row in wins) / (p * (p - 1))
    of_negatives = sum((sum(row[j] for row in wins) / p - area) ** 2 for j in range(n)) / (n * (n - 1))
    return area, of_positives + of_negatives


def test_two_classes_are_delongs() -> None:
    logits, label = drawn(60, 0.3, 1.0, 0)
    logits = (2 * logits).round()  # with ties
    found = auc_interval(logits.softmax(-1), label)
    area, variance = slow(logits[:, 1] - logits[:, 0], label == 1)
    assert found.mean == pytest.approx(area)
    assert found.mean - found.low == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-5)


def test_several_classes_are_the_mean_over_them() -> None:
    logits, label = drawn(200, 0.2, 1.0, 1, classes=4)
    found = auc_interval(logits.softmax(-1), label)
    assert found.mean == pytest.approx(auc(logits, label))
    assert found.low < found.mean < found.high


def test_texts_of_one_class_have_no_curve() -> None:
    found = auc_interval(torch.full((5, 2), 0.5), torch.zeros(5, dtype=torch.long))
    assert found.n == 0
    assert math.isnan(found.mean)


def test_few_positives_that_lie_alike_are_not_sure() -> None:
    """One positive, and it comes first of three: a guess does that in a third of all cases."""
    probabilities = torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.7, 0.3]])
    found = auc_interval(probabilities, torch.tensor([1, 0, 0]))
    assert found.mean == 1.0
    assert found.low < 0.5  # a share of 1 of 1
    label = torch.arange(100) < 20
    perfect = auc_interval(torch.stack([1 - label.double(), label.double()], 1), label.long())
    assert (perfect.mean, perfect.low, perfect.high) == (1.0, clopper_pearson(20, 20)[0], 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "rare"), [(2, 0.5), (2, 0.05), (5, 0.1)])
def test_models_that_guess_are_seldom_taken_for_more(classes: int, rare: float) -> None:
    """1 in 40 by the nominal level; 400 simulations of 60 texts."""
    found = [auc_interval(*_guessed(60, rare, seed, classes)) for seed in range(400)]
    assert sum(each.low > 0.5 for each in found) <= 20


def _guessed(n: int, rare: float, seed: int, classes: int) -> tuple[Tensor, Tensor]:
    logits, label = drawn(n, rare, 0.0, seed, classes)
    return logits.softmax(-1), label


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "rare", "apart"), [(2, 0.2, 1.0), (4, 0.1, 1.5)])
def test_the_interval_covers(classes: int, rare: float, apart: float) -> None:
    logits, label = drawn(40_000, rare, apart, 10_000, classes)
    truth = auc(logits, label)
    samples = [drawn(150, rare, apart, seed, classes) for seed in range(300)]
    found = [auc_interval(scores.softmax(-1), gold) for scores, gold in samples]
    assert 0.92 <= sum(each.low <= truth <= each.high for each in found) / 300 <= 0.985


def test_a_rare_class_does_not_hide_what_is_known_of_others() -> None:
    """Right of 180 texts, four of which have a third class: surely no guess; of the four alone nobody could tell."""
    label = torch.tensor([0] * 90 + [1] * 86 + [2] * 4)
    area = auc_interval((10.0 * torch.nn.functional.one_hot(label, 3)).double().softmax(-1), label)
    assert area.mean == 1
    lows = [clopper_pearson(n, n, 1 - 0.05 / 3)[0] for n in (90, 86, 4)]
    assert area.low == pytest.approx(sum(lows) / 3)
    assert area.low > 0.5
    assert lows[-1] < 0.5
