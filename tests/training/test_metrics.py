"""Metrics against scikit-learn and by hand."""

import math

import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score

from exegete.tasks.example import Example
from exegete.training.evaluation import predict
from exegete.training.metrics import accuracy, all_metrics, auc, f1
from exegete.training.objectives import class_weights
from tests.small import SPECS, small_model, texts


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_against_scikit_learn(classes: int) -> None:
    torch.manual_seed(classes)
    logits = torch.randn(80, classes).round(decimals=1)  # rounding makes ties
    label = torch.randint(classes, (80,))
    log_odds = logits.double().softmax(-1).logit()
    expected = (
        roc_auc_score(label, log_odds[:, 1])
        if classes == 2
        else sum(roc_auc_score(label == c, log_odds[:, c]) for c in range(classes)) / classes
    )
    assert auc(logits, label) == pytest.approx(expected, abs=2e-3)
    assert accuracy(logits, label) == (logits.argmax(-1) == label).double().mean()
    assert all_metrics(logits, label)["macro_f1"] == pytest.approx(f1_score(label, logits.argmax(-1), average="macro"))


def test_auc_by_hand() -> None:
    z = torch.tensor([-0.3, 0.0, -0.05, 0.4, 0.0])
    logits = torch.stack([-z / 2, z / 2], 1)
    label = torch.tensor([0, 0, 1, 1, 1])
    assert auc(logits, label) == pytest.approx((1 + 0 + 1 + 1 + 1 + 0.5) / 6)  # six pairs, one tie


def test_one_class_alone_has_no_curve() -> None:
    assert math.isnan(auc(torch.randn(4, 2), torch.ones(4, dtype=torch.long)))
    assert all_metrics(torch.randn(4, 2), torch.ones(4, dtype=torch.long))["auc"] is None


def test_f1_of_an_absent_class_is_zero() -> None:
    assert f1(torch.tensor([[1.0, 0, 0]]), torch.tensor([0]), of=2) == 0


def test_class_weights_have_the_ratio_of_jain_and_wallace() -> None:
    examples = [Example(i, (("w",),), int(i < 3)) for i in range(12)]
    weights = class_weights(examples, 2)
    assert float(weights[1] / weights[0]) == pytest.approx(9 / 3)  # N_neg / N_pos


def test_predictions_have_the_precision_of_the_model() -> None:
    examples = texts(9)
    model = small_model(SPECS[0], examples)
    single, double = predict(model, examples), predict(model.double(), examples)
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert torch.allclose(single.double(), double, atol=1e-5)
    assert torch.allclose(double, model.logits(model.collate(examples)).detach())
    assert predict(model, ()).shape == (0, 2)
