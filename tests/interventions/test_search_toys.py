"""Search: toys whose answers are known by hand, and the adversary as an intervention."""

import math
from dataclasses import replace

import pytest
import torch

from exegete.interventions.adversarial import Adversarial
from exegete.interventions.contract import bound
from exegete.interventions.search import Search, find
from exegete.models.capabilities import Encoded
from exegete.models.openings import OpenedPooling, decoder
from exegete.models.ours.classifier import PoolingClassifier
from tests.small import batch_of, small_model, texts

EXAMPLES = texts(40)
BINARY = "bilstm:size=7,hidden=6,scale=1"


def toy(values: list[list[float]], weights: list[float]) -> OpenedPooling:
    """One text whose words have the values z, with the given weights."""
    model = small_model(BINARY, EXAMPLES)
    z = torch.tensor(values)[:, :, None]
    mask = torch.ones(z.shape[:2], dtype=torch.bool)
    encoded = Encoded(torch.zeros(*z.shape[:2], 12), torch.zeros(z.shape[:2]), mask, torch.cat([-z / 2, z / 2], -1))
    own = torch.tensor([weights] * len(values), dtype=torch.float64)
    return decoder(model, encoded.to(torch.float64), torch.arange(len(values)), own)


def test_words_of_equal_value_may_have_any_weights() -> None:
    """No prediction can change, so JSD goes to its bound ln 2: all weight where the original has none."""
    pool = toy([[2.0, 2.0]], [1.0, 0.0])
    found = find(pool, Search(steps=1000, lr=0.05))
    assert found.tvd.max() < 1e-12
    best = int(found.best(0.01)[0])
    assert found.jsd[0, best] > 0.95 * math.log(2)
    assert found.weights[0, best, 0, 1] > 0.95


def test_two_words_of_different_value_leave_no_choice() -> None:
    """p fixes the weight of one of two words: JSD stays near 0."""
    pool = toy([[4.0, -4.0]], [0.5, 0.5])
    found = find(pool, Search())
    assert (found.tvd <= 0.02).all()
    assert found.jsd[0, int(found.best(0.02)[0])] < 1e-3


def test_a_single_word_keeps_its_weight() -> None:
    pool = toy([[3.0]], [1.0])
    found = find(pool, Search(steps=5))
    assert found.weights.eq(1).all()
    assert max(found.jsd.abs().max(), found.tvd.abs().max()) < 1e-12
    assert found.best(0.01).tolist() == [-1]


def test_a_text_without_any_key() -> None:
    pool = toy([[1.0, 2.0]], [0.0, 0.0])
    found = find(replace(pool, mask=torch.zeros(1, 2, dtype=torch.bool)), Search(steps=5))
    assert not found.weights.any()
    assert max(found.jsd.abs().max(), found.tvd.abs().max()) < 1e-12


def test_the_intervention_encodes_without_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """In training it encodes once more for its search, of which no gradient is needed."""
    model = small_model(BINARY, EXAMPLES)
    recorded = []
    real = PoolingClassifier.encode

    def noted(*of: object, **settings: object) -> Encoded:
        recorded.append(torch.is_grad_enabled())
        return real(*of, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(PoolingClassifier, "encode", noted)
    trace = model.trace(batch_of(model, EXAMPLES[:4]), intervene=bound(Adversarial(steps=3), model))
    trace.logits.sum().backward()
    assert recorded[-1] is False
    assert model.decoder.weight.grad is not None
