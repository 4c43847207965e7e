"""Importances of a Transformer: rollout in loops, flow against linear programmes."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.attention import Attention
from exegete.importance.attention_x_gradient import AttentionXGradient
from exegete.importance.attention_x_norm import AttentionXNorm
from exegete.importance.contract import refusal
from exegete.importance.flow import Flow, flows, maximum
from exegete.importance.gradient import Gradient
from exegete.importance.rollout import Graph, Rollout
from exegete.models.contract import Site
from exegete.models.ours.transformer import Transformer
from tests.small import SPECS, TRANSFORMERS, batch_of, small_model, texts

EXAMPLES = texts(6, longest=6)


def transformer(spec: str = TRANSFORMERS[0], wrap: bool = False) -> Transformer:
    model = small_model(spec, EXAMPLES, wrap).double()
    assert isinstance(model, Transformer)
    return model


def test_gradients_against_finite_differences() -> None:
    """Through both layers, positions and the pool."""
    model = transformer()
    e = max(EXAMPLES, key=len)
    batch = batch_of(model, [e])
    base = model.embed(batch).detach()
    c = int(model.trace(batch).logits.argmax())
    expected = torch.zeros(len(e), dtype=torch.float64)
    for t in range(len(e)):
        sides = []
        for step in (1e-6, -1e-6):
            moved = base.clone()
            moved[0, t] *= 1 + step
            sides.append(float(model.trace(batch, embedded=moved).logits[0, c].detach()))
        expected[t] = abs(sides[0] - sides[1]) / 2e-6
    torch.testing.assert_close(Gradient()(model, batch).values[0], expected, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_attention_is_the_pools_unless_a_layer_is_named() -> None:
    """In a layer it is the mean over heads and over the queries that are there: wrappers, but no padding."""
    model = transformer(wrap=True)
    batch = batch_of(model, EXAMPLES)
    trace = model.trace(batch)
    pool, layer = Attention()(model, batch).values, Attention("encoder.1")(model, batch).values
    norms = AttentionXNorm("encoder.1")(model, batch).values
    for i, there in enumerate(batch.present.sum(-1).tolist()):
        for t in batch.words[i].nonzero()[:, 0].tolist():
            assert float(pool[i, t]) == pytest.approx(float(trace.attention["attention"][i, 0, 0, t]))
            cells = [float(trace.attention["encoder.1"][i, h, q, t]) for h in (0, 1) for q in range(there)]
            assert float(layer[i, t]) == pytest.approx(sum(cells) / (2 * there))
            length = float(trace.states["encoder.1"][i, t].norm())
            assert float(norms[i, t]) == pytest.approx(sum(cells) / (2 * there) * length)
    assert batch.present.sum(-1).unique().numel() > 2  # lengths differ, so padding would show
    with pytest.raises(UsageError, match=r"unknown site 'encoder\.7'"):
        Attention("encoder.7")(model, batch)


def test_attention_x_gradient_in_a_layer_by_finite_differences() -> None:
    model = transformer()
    e = max(EXAMPLES, key=len)
    batch = batch_of(model, [e])
    c = int(model.trace(batch).logits.argmax())
    got = AttentionXGradient("encoder.0")(model, batch).values[0]
    for t in range(len(e)):

        def scaled(site: Site, by: float, t: int = t) -> Tensor:
            weights = site.weights.clone()
            if site.name == "encoder.0":
                weights[..., t] *= by
            return weights

        up, down = (
            float(model.trace(batch, intervene=lambda s, by=by: scaled(s, by)).logits[0, c].detach())  # type: ignore[misc]
            for by in (1 + 1e-6, 1 - 1e-6)
        )
        assert float(got[t]) == pytest.approx((up - down) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("spec", TRANSFORMERS)
@torch.no_grad()
def test_rollout_is_the_sum_over_all_paths(spec: str) -> None:
    """From the pool through a token per layer down to a word, each path worth the product of its shares."""
    model = transformer(spec, wrap=True)
    batch = batch_of(model, EXAMPLES[:3])
    trace, got = model.trace(batch), Rollout()(model, batch)
    assert not got.signed
    for i in range(3):
        n = int(batch.present[i].sum())
        layers = [trace.attention[site][i].mean(0)[:n, :n].tolist() for site in model.self_attention]
        pool = trace.attention["attention"][i, 0, 0, :n].tolist()
        reached = [0.0] * n
        for path in itertools.product(range(n), repeat=len(layers) + 1):  # from the top: each token of each level
            worth = pool[path[0]]
            for layer, (above, below) in zip(reversed(layers), itertools.pairwise(path), strict=True):
                worth *= (layer[above][below] + (above == below)) / 2
            reached[path[-1]] += worth
        assert sum(reached) == pytest.approx(1)
        words = batch.words[i]
        torch.testing.assert_close(
            got.values[i][words], torch.tensor(reached).double()[words[:n]], atol=1e-6, rtol=1e-6
        )


def programme(pool: np.ndarray, layers: list[np.ndarray], sink: int) -> float:
    """The maximum flow as a linear programme over edges: capacities, and what enters a node leaves it."""
    n, edges = len(pool), []  # (from, to, capacity), nodes (level, token), the output at level len(layers) + 1
    top = len(layers)
    edges += [((top + 1, 0), (top, t), pool[t]) for t in range(n)]
    for level, layer in enumerate(layers, 1):
        edges += [((level, i), (level - 1, j), layer[i, j]) for i in range(n) for j in range(n)]
    inner = [(level, t) for level in range(1, top + 1) for t in range(n)]
    balance = [[float(a == node) - float(b == node) for a, b, _ in edges] for node in inner]
    into = [-float(b == (0, sink)) for _, b, _ in edges]
    found = linprog(into, A_eq=balance, b_eq=[0.0] * len(inner), bounds=[(0, c) for *_, c in edges])
    assert found.success
    assert found.fun is not None
    return -float(found.fun)


@given(seed=st.integers(0, 10_000), tokens=st.integers(1, 4), depth=st.integers(1, 3), sparse=st.booleans())
@settings(max_examples=8, deadline=None)
def test_flow_is_the_optimum_of_the_linear_programme(seed: int, tokens: int, depth: int, sparse: bool) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.dirichlet(np.full(tokens, 0.3 if sparse else 2.0), size=depth * tokens + 1)
    layers = [(rows[i * tokens : (i + 1) * tokens] + np.eye(tokens)) / 2 for i in range(depth)]
    for sink in range(tokens):
        assert maximum(rows[-1], layers, sink) == pytest.approx(programme(rows[-1], layers, sink), abs=1e-7)


def test_flows_known_by_hand() -> None:
    """One layer: Σ_i min(α_i, Ã_ij). Two: a word is only reached through narrow edges, and padding isn't there."""
    pool, layer = np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.4, 0.6]])
    assert maximum(pool, [layer], 0) == pytest.approx(0.7 + 0.3)
    assert maximum(pool, [layer], 1) == pytest.approx(0.1 + 0.3)
    assert maximum(pool, [layer, np.eye(2)], 1) == pytest.approx(0.1 + 0.3)
    assert maximum(np.array([1.0, 0.0]), [layer, np.eye(2)], 1) == pytest.approx(0.1)
    wide = torch.zeros(1, 3, 3, dtype=torch.float64)
    wide[0, 1:, 1:] = torch.from_numpy(layer)
    present = torch.tensor([[False, True, True]])
    found = flows(Graph([wide], torch.tensor([[0.0, 0.7, 0.3]]).double()), present, present)
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.0, 0.4]]).double(), atol=1e-8, rtol=0)


@torch.no_grad()
def test_flow_of_a_model_is_that_of_its_weights() -> None:
    model = transformer(wrap=True)
    e = min(EXAMPLES, key=lambda e: abs(len(e) - 3))
    batch = batch_of(model, [e])
    trace = model.trace(batch)
    n = batch.tokens.shape[1]
    layers = [(trace.attention[s][0].mean(0).numpy() + np.eye(n)) / 2 for s in model.self_attention]
    got = Flow()(model, batch)
    assert not got.signed
    for t in batch.words[0].nonzero()[:, 0].tolist():
        expected = programme(trace.attention["attention"][0, 0, 0].numpy(), layers, t)
        assert float(got.values[0, t]) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("importance", [Rollout(), Flow()])
def test_without_layers_there_is_nothing_to_follow(importance: Rollout | Flow) -> None:
    model = small_model(SPECS[0], EXAMPLES)
    assert "through layers of self-attention, and BiLSTMClassifier has none: use it on transformer" in str(
        refusal(importance, model)
    )
    with pytest.raises(UsageError, match="use it on transformer"):
        importance(model, batch_of(model, EXAMPLES))
