"""Readings against slow versions: loops over layers, heads and queries, as they are written down."""

import pytest
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.attention import Attention
from exegete.importance.flow import Flow
from exegete.importance.reading import Reading, ReadingPlace
from exegete.importance.rollout import Rollout
from exegete.interventions.sites import Head
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from tests.models import tiny

TEXTS = ("a bad movie of charming plot", "unbelievably dull", "ok of a terrific plot movie bad")


@pytest.fixture(scope="module")
def model() -> Predictor:
    return tiny.in_memory(*tiny.bert())


@pytest.fixture(scope="module")
def batch(model: Predictor) -> Batch:
    return model.collate([Example(i, (tuple(text.split()),), 0) for i, text in enumerate(TEXTS)])


def slow(model: Predictor, batch: Batch, sites: list[str], heads: list[int], every: bool) -> Tensor:
    """The mean over sites, heads and queries of what each gives to each word; CLS is the first query."""
    weights = model.trace(batch).attention
    found = torch.full(batch.tokens.shape, torch.nan, dtype=torch.float64)
    for text in range(len(batch.ids)):
        queries = [q for q in range(batch.tokens.shape[1]) if batch.present[text, q]] if every else [0]
        for word in batch.words[text].nonzero()[:, 0].tolist():
            given = [float(weights[s][text, h, q, word]) for s in sites for h in heads for q in queries]
            found[text, word] = sum(given) / len(given)
    return found


@pytest.mark.parametrize(
    ("reading", "sites", "heads", "every"),
    [
        (Reading(), ["encoder.1"], [0, 1], False),
        (Reading(site="every"), ["encoder.0", "encoder.1"], [0, 1], False),
        (Reading(site="encoder.0", head=1), ["encoder.0"], [1], False),
        (Reading(query="every"), ["encoder.1"], [0, 1], True),
        (Reading(site="every", query="every"), ["encoder.0", "encoder.1"], [0, 1], True),
    ],
)
def test_means(
    reading: Reading, sites: list[str], heads: list[int], every: bool, model: Predictor, batch: Batch
) -> None:
    with torch.no_grad():
        expected = slow(model, batch, sites, heads, every)
    torch.testing.assert_close(reading(model, batch).values, expected, rtol=1e-5, atol=1e-7, equal_nan=True)


def test_the_default_is_attention_and_others_are_what_they_are_called(model: Predictor, batch: Batch) -> None:
    for reading, other in (
        (Reading(), Attention()),
        (Reading("rollout", "every"), Rollout()),
        (Reading("flow", "every"), Flow()),
    ):
        found, expected = reading(model, batch).values, other(model, batch).values.double()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7, equal_nan=True)


def test_heads_left_out_of_a_mean(model: Predictor, batch: Batch) -> None:
    with torch.no_grad():
        trace = model.trace(batch)
        kept = Reading(site="every").of(model, trace, batch, {Head("encoder.0", 0), Head("encoder.0", 1)})
        torch.testing.assert_close(kept, Reading(site="encoder.1").of(model, trace, batch))
        nothing = Reading().of(model, trace, batch, {Head("encoder.1", 0), Head("encoder.1", 1)})
    assert not nothing.any()


def test_a_layer_without_heads_is_its_residual(model: Predictor, batch: Batch) -> None:
    """With layer 1 left out, what is followed is CLS's row of layer 0, halved, and half of CLS itself."""
    with torch.no_grad():
        trace = model.trace(batch)
        found = Reading("rollout", "every").of(model, trace, batch, {Head("encoder.1", 0), Head("encoder.1", 1)})
        row = trace.attention["encoder.0"].double().mean(1)[:, 0]
    expected = row / 2
    expected[:, 0] += 0.5
    torch.testing.assert_close(found, expected / expected.sum(-1, keepdim=True))


def test_where_a_reading_looks_is_said(model: Predictor) -> None:
    assert Reading().place(model) == ReadingPlace("encoder.1", "mean", "the first token")
    assert Reading(site="encoder.0", head=1).place(model) == ReadingPlace("encoder.0", "1", "the first token")
    assert Reading("rollout", "every").place(model) == ReadingPlace("encoder.0 to encoder.1", "mean", "every token")


def test_what_there_is_not(model: Predictor, batch: Batch) -> None:
    with pytest.raises(UsageError, match=r"no head 5 at site 'encoder\.1': it has heads 0 to 1"):
        Reading(head=5)(model, batch)
    with pytest.raises(UsageError, match="rollout is of every layer and head"):
        Reading("rollout")
    with pytest.raises(UsageError, match="site"):
        Reading(site="encoder.7")(model, batch)
