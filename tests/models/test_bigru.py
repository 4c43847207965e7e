"""BiGRU: against the paper's formulas written out unit by unit, for single texts and in batches."""

import math

import torch

from exegete.importance.catalogue import IMPORTANCES
from exegete.models.ours.classifier import SITE
from exegete.models.ours.encoders import BiGRU
from exegete.models.settings import MODELS
from tests.small import batch_of, small_model, texts

SPEC = "bigru:size=5,hidden=4,scale=1"


def slow_states(gru: torch.nn.GRU, vectors: list[list[float]], suffix: str) -> list[list[float]]:
    """z = σ(W_z x + U_z h + b_z), r likewise, n = tanh(W x + b + r (U h + b')), h' = (1 − z) n + z h."""
    W, U, b, b_ = (getattr(gru, f"{n}_l0{suffix}").tolist() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    size, h, out = gru.hidden_size, [0.0] * gru.hidden_size, []

    def dot(row: list[float], column: list[float]) -> float:
        return sum(w * v for w, v in zip(row, column, strict=True))

    for x in vectors:
        new = []
        for j in range(size):
            r, z = (1 / (1 + math.exp(-(dot(W[k], x) + b[k] + dot(U[k], h) + b_[k]))) for k in (j, size + j))
            k = 2 * size + j
            n = math.tanh(dot(W[k], x) + b[k] + r * (dot(U[k], h) + b_[k]))
            new.append((1 - z) * n + z * h[j])
        h = new
        out.append(h)
    return out


def test_states_are_those_of_the_formulas() -> None:
    examples = texts(6)
    model = small_model(SPEC, examples)
    assert isinstance(model.encoder, BiGRU)
    with torch.no_grad():
        for e in examples:
            batch = batch_of(model, [e])
            vectors = model.embed(batch)[0].tolist()
            ahead, back = (
                slow_states(model.encoder.gru, vectors, ""),
                slow_states(model.encoder.gru, vectors[::-1], "_reverse"),
            )
            expected = torch.tensor([a + b for a, b in zip(ahead, back[::-1], strict=True)])
            assert torch.allclose(model.trace(batch).states[SITE][0], expected, atol=1e-5)


def test_a_name_builds_it_and_importances_take_it() -> None:
    examples = texts(5)
    model = small_model("bigru:size=5,hidden=3,attention=dot,projection=sparsemax", examples)
    assert model.name == "bigru"
    assert model.encoder.out == 6
    assert "bigru" in MODELS
    batch = batch_of(model, examples)
    for method in ("attention", "gradient", "leave_one_out"):  # the last without the BiLSTM's shortcut
        assert torch.equal(IMPORTANCES.make(method)(model, batch).values.isnan(), ~batch.words)
