"""The catalogue: every measure answers to its name and has one line to say."""

import pytest
import torch

from exegete.base.errors import UsageError
from exegete.measures.catalogue import MEASURES
from exegete.measures.rank import kendall


def test_names_and_summaries() -> None:
    rank = {"tau", "tau_max", "tau_corrected", "gamma", "spearman", "fagin", "bucket", "legacy"}
    assert set(MEASURES) == rank | {"tvd", "jsd", "entropy"}
    assert all(entry.summary and "\n" not in entry.summary for entry in MEASURES.values())


def test_every_measure_answers() -> None:
    first, second = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.5, 0.3, 0.2]])
    arguments = {
        "entropy": (first,),
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
