"""The catalogue: every measure answers to its name and has one line to say."""

from typing import Any

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.importance.gradient import Gradient
from exegete.measures.catalogue import MEASURES
from exegete.measures.rank import kendall
from exegete.tasks.example import Example
from tests.small import SPECS, batch_of, small_model, texts


def test_names_and_summaries() -> None:
    rank = {"tau", "tau_max", "tau_corrected", "gamma", "spearman", "fagin", "bucket", "legacy"}
    plausibility = {"auprc", "token_f1", "iou_f1", "precision_at"}
    faithfulness = {"comprehensiveness", "sufficiency", "log_odds", "flip", "infidelity", "sensitivity_max"}
    translation = {"bleu", "alignment_error_rate"}
    assert set(MEASURES) == rank | plausibility | faithfulness | translation | {"tvd", "jsd", "entropy", "kappa"}
    assert all(entry.summary and "\n" not in entry.summary for entry in MEASURES.values())


def test_every_measure_answers() -> None:
    first, second = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.5, 0.3, 0.2]])
    marked, ids = torch.tensor([[True, False, False]]), torch.tensor([0])
    model = small_model(SPECS[4], texts(3))
    batch, label = batch_of(model, [Example(0, (("a", "b", "c"),), 0)]), torch.tensor([0])
    arguments: dict[str, tuple[Any, ...]] = {
        "comprehensiveness": (first, first[:, None], label),
        "sufficiency": (first, first[:, None], label),
        "log_odds": (first, first[:, None], label),
        "flip": (model, batch, first, label),
        "infidelity": (model, batch, first, label),
        "sensitivity_max": (Gradient(), model, batch, 1),
        "entropy": (first,),
        "bleu": (torch.ones(1, 10),),
        "alignment_error_rate": (torch.ones(1, 4),),
        "auprc": (first, marked),
        "token_f1": (first, marked, 1),
        "iou_f1": (first, marked, 1, ids),
        "precision_at": (first, marked, 1),
        "fagin": (first, second, 2),
        "bucket": (first, second, 2),
        "legacy": (first, second, 2),
    }
    for name in MEASURES:
        assert MEASURES[name].load()(*arguments.get(name, (first, second))).shape == (1,)
    result = kendall(first, second)
    assert MEASURES["tau"].load()(first, second) == result.tau
    assert MEASURES["tau_max"].load()(first, second) == result.maximum
    assert MEASURES["tau_corrected"].load()(first, second) == result.tau / result.maximum
    assert MEASURES["gamma"].load()(first, second) == result.gamma


def test_a_wrong_name_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'tau_max'"):
        MEASURES["tau_mx"]
