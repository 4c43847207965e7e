"""Gates: σ(z) / n, each on its own; the one projection whose weights don't sum to 1."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exegete.base.errors import UsageError
from exegete.models.ours.classifier import SITE
from exegete.models.projections import PROJECTIONS, Gates
from exegete.models.settings import MODELS
from tests.small import batch_of, small_model, texts

SPEC = "bilstm:size=7,hidden=6,scale=1,projection=gates"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-30, 30), st.booleans()), min_size=1, max_size=8))
def test_every_real_key_has_its_own_gate(keys: list[tuple[float, bool]]) -> None:
    scores, mask = (torch.tensor(column) for column in zip(*keys, strict=True))
    n = sum(real for _, real in keys)
    expected = [1 / (1 + math.exp(-z)) / n if real else 0.0 for z, real in keys]
    weights = PROJECTIONS["gates"].load()()(scores.double(), mask)
    assert weights.tolist() == pytest.approx(expected, abs=1e-7)


def test_a_gate_takes_nothing_from_the_others() -> None:
    mask = torch.ones(3, dtype=torch.bool)
    before, after = Gates()(torch.tensor([[0.0, 1, 2], [0.0, 9, 2]]), mask)
    torch.testing.assert_close(before[[0, 2]], after[[0, 2]])
    assert after[1] > before[1]
    assert float(before.sum()) < 1  # no distribution


def test_gradients_are_exact() -> None:
    z = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, True, False, True, True])
    assert torch.autograd.gradcheck(lambda z: Gates()(z, mask), (z,))


@pytest.mark.parametrize("wrap", [False, True])
def test_a_gated_model(wrap: bool) -> None:
    examples = texts(12)
    model = small_model(SPEC, examples, wrap)
    batch = batch_of(model, examples)
    trace, encoded = model.trace(batch), model.encode(batch)
    gates = trace.attention[SITE][:, 0, 0]
    for i, e in enumerate(examples):
        alone = model.trace(batch_of(model, [e]))
        assert (alone.logits[0] - trace.logits[i]).abs().max() < 1e-5
        assert gates[i][batch.words[i]].tolist() == pytest.approx(
            (encoded.scores[i][batch.words[i]].sigmoid() / len(e)).tolist(), abs=1e-6
        )
    assert gates[~batch.words].abs().sum() == 0
    pooled = (gates[..., None] * encoded.states).sum(1)
    assert torch.allclose(model.two_sided(model.decoder(pooled)), trace.logits, atol=1e-5)


def test_gates_have_no_dials() -> None:
    with pytest.raises(UsageError, match="lam goes with projection=sparsegen"):
        MODELS.make("bilstm:projection=gates,lam=0.5")
