"""The layers of a Transformer: against the equations in loops, step by step and at once, with padding and without."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.ours.self_attention import (
    DecoderLayer,
    EncoderLayer,
    MultiHead,
    NormPlace,
    among,
    not_later,
    sinusoids,
)
from exegete.models.projections import Entmax, Gates, Projection, Softmax, Sparsemax

PROJECTIONS: tuple[Projection, ...] = (Softmax(), Sparsemax(), Entmax(1.3), Gates())


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def made(module: nn.Module, seed: int = 0) -> None:
    """Weights that matter, in float64."""
    module.double().eval()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(drawn(*parameter.shape, seed=seed + number) / math.sqrt(parameter.shape[-1]))


def slow_norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    mean = sum(x.tolist()) / len(x)
    variance = sum((v - mean) ** 2 for v in x.tolist()) / len(x)
    normed: Tensor = (x - mean) / math.sqrt(variance + norm.eps) * norm.weight + norm.bias
    return normed


def slow_heads(attention: MultiHead, queries: list[Tensor], keys: list[Tensor], sees: list[list[bool]]) -> list[Tensor]:
    """Softmax attention, head by head, query by query, over the keys that a query sees."""
    size, found = len(keys[0]) // attention.heads, []
    for i, x in enumerate(queries):
        parts, seen = [], [y for y, s in zip(keys, sees[i], strict=True) if s]
        for head in range(attention.heads):
            cut = slice(head * size, (head + 1) * size)
            q = attention.query(x)[cut]
            z = [float(q @ attention.key(y)[cut]) / math.sqrt(size) for y in seen]
            total = sum(math.exp(v) for v in z)
            mixed = torch.zeros(size, dtype=torch.float64)
            for v, y in zip(z, seen, strict=True):
                mixed += math.exp(v) / total * attention.value(y)[cut]
            parts.append(mixed)
        found.append(attention.out(torch.cat(parts)))
    return found


def slow_feed(feed: nn.Sequential, x: Tensor) -> Tensor:
    (a, b), (c, d) = ((feed[i].get_parameter("weight"), feed[i].get_parameter("bias")) for i in (0, 3))
    return c @ (a @ x + b).clamp(min=0) + d


def test_positions_are_those_of_the_paper() -> None:
    found = sinusoids(7, 10)
    for place in range(7):
        for i in range(5):
            angle = place / 10_000 ** (2 * i / 10)
            assert float(found[place, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
            assert float(found[place, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)
    assert sinusoids(3, 5).shape == (3, 5)  # an odd size too


@pytest.mark.parametrize("heads", [1, 2, 3])
@torch.no_grad()
def test_multi_head_attention_in_loops(heads: int) -> None:
    attention = MultiHead(6, heads, Softmax())
    made(attention)
    queries, keys = drawn(2, 3, 6, seed=1), drawn(2, 4, 6, seed=2)
    mask = torch.ones(2, 1, 3, 4, dtype=torch.bool)
    mask[0, 0, :, 3] = False  # padding
    mask[1, 0, 0, 1:] = False
    out, weights = attention(queries, keys, mask)
    assert weights.shape == (2, heads, 3, 4)
    for row in range(2):
        expected = slow_heads(attention, list(queries[row]), list(keys[row]), mask[row, 0].tolist())
        torch.testing.assert_close(out[row], torch.stack(expected))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, heads, 3, dtype=torch.float64))


@given(seed=st.integers(0, 1000), heads=st.sampled_from([1, 2]), kind=st.sampled_from(range(len(PROJECTIONS))))
@settings(max_examples=12, deadline=None)
def test_nothing_outside_the_mask_and_no_nan(seed: int, heads: int, kind: int) -> None:
    """A query that sees nothing has no weights and gives the bias alone; its gradients are numbers."""
    attention = MultiHead(4, heads, PROJECTIONS[kind])
    made(attention, seed)
    x = drawn(2, 5, 4, seed=seed).requires_grad_()
    present = torch.rand(2, 5, generator=torch.Generator().manual_seed(seed)) < 0.6
    present[1] = False
    out, weights = attention(x, x, among(present))
    assert bool((weights.masked_fill(among(present).expand_as(weights), 0) == 0).all())
    torch.testing.assert_close(out[1], attention.out.bias.expand(5, 4))
    (gradient,) = torch.autograd.grad(out.square().sum(), x)
    assert bool(gradient.isfinite().all())
    if kind != 3:  # gates don't sum to 1
        torch.testing.assert_close(weights.sum(-1), present[:, None].expand(2, heads, 5).double())


def test_a_hook_sees_everything_and_decides_the_weights() -> None:
    attention = MultiHead(4, 2, Softmax())
    made(attention)
    x, mask = drawn(1, 3, 4), not_later(3)
    seen: list[Tensor] = []

    def first_only(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
        seen.extend([scores, weights])
        torch.testing.assert_close(project(scores, mask), weights)
        return torch.zeros_like(weights).index_fill(-1, torch.tensor([0]), 1.0)

    out, weights = attention(x, x, mask, first_only)
    assert len(seen) == 2
    assert weights[..., 0].eq(1).all()
    torch.testing.assert_close(out, attention.moved(x[:, :1]).expand(1, 3, 4) + attention.out.bias)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_an_encoder_layer_in_loops(norm: NormPlace) -> None:
    layer = EncoderLayer(6, 2, 9, Softmax(), dropout=0.3, norm=norm)
    made(layer)
    x = drawn(1, 4, 6, seed=3)
    found = layer(x, among(torch.ones(1, 4, dtype=torch.bool)))
    first, second = layer.around_attention.norm, layer.around_feed_forward.norm
    before = [slow_norm(first, v) if norm == "pre" else v for v in x[0]]
    for v, got, y in zip(
        slow_heads(layer.attention, before, before, [[True] * 4] * 4), found.states[0], x[0], strict=True
    ):
        y = y + v if norm == "pre" else slow_norm(first, y + v)
        z = y + slow_feed(layer.feed_forward, slow_norm(second, y) if norm == "pre" else y)
        torch.testing.assert_close(got, z if norm == "pre" else slow_norm(second, z))


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_a_decoder_layer_in_loops_at_once_and_step_by_step(norm: NormPlace) -> None:
    layer = DecoderLayer(6, 2, 9, (Softmax(), Softmax()), norm=norm)
    made(layer)
    target, source = drawn(2, 4, 6, seed=5), drawn(2, 5, 6, seed=6)
    over = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    over[0, ..., 3:] = False
    whole = layer(target, layer.begin(source), (not_later(4), over))
    for row in range(2):
        torch.testing.assert_close(
            whole.states[row], slow_decoder(layer, target[row], source[row], over[row, 0, 0], norm)
        )
    past, steps = layer.begin(source), []
    for step in range(4):
        found = layer(target[:, step : step + 1], past, (torch.ones(1, 1, 1, step + 1, dtype=torch.bool), over))
        past = found.past
        steps.append(found)
    torch.testing.assert_close(torch.cat([s.states for s in steps], 1), whole.states)
    torch.testing.assert_close(torch.cat([s.cross for s in steps], 2), whole.cross)
    torch.testing.assert_close(steps[2].own, whole.own[:, :, 2:3, :3])


def slow_decoder(layer: DecoderLayer, target: Tensor, source: Tensor, real: Tensor, norm: NormPlace) -> Tensor:
    parts = (layer.around_own, layer.around_cross, layer.around_feed_forward)
    norms = [part.norm for part in parts]
    pre = norm == "pre"

    def entered(i: int, xs: list[Tensor]) -> list[Tensor]:
        return [slow_norm(norms[i], x) for x in xs] if pre else xs

    def left(i: int, xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
        sums = [x + y for x, y in zip(xs, ys, strict=True)]
        return sums if pre else [slow_norm(norms[i], s) for s in sums]

    x = list(target)
    earlier = [[j <= i for j in range(len(x))] for i in range(len(x))]
    x = left(0, x, slow_heads(layer.own, entered(0, x), entered(0, x), earlier))
    x = left(1, x, slow_heads(layer.cross, entered(1, x), list(source), [real.tolist()] * len(x)))
    return torch.stack(left(2, x, [slow_feed(layer.feed_forward, v) for v in entered(2, x)]))


@torch.no_grad()
def test_a_beam_goes_on_with_any_rows() -> None:
    layer = DecoderLayer(4, 1, 8, (Softmax(), Softmax()))
    made(layer)
    target, source = drawn(3, 2, 4, seed=7), drawn(3, 3, 4, seed=8)
    over, rows = torch.ones(3, 1, 1, 3, dtype=torch.bool), torch.tensor([2, 0, 0])
    first = layer(target[:, :1], layer.begin(source), (not_later(1), over))
    second = layer(target[rows, 1:], first.past.rows(rows), (torch.ones(1, 1, 1, 2, dtype=torch.bool), over))
    whole = layer(target[rows], layer.begin(source[rows]), (not_later(2), over))
    torch.testing.assert_close(second.states[:, 0], whole.states[:, 1])


def test_dropout_is_of_training_only_and_leaves_the_reported_weights() -> None:
    layer = EncoderLayer(4, 1, 8, Softmax(), dropout=0.5).double()
    x, mask = drawn(2, 6, 4), among(torch.ones(2, 6, dtype=torch.bool))
    torch.manual_seed(0)
    first, second = layer(x, mask), layer(x, mask)
    assert not torch.allclose(first.states, second.states)
    torch.testing.assert_close(first.weights, second.weights)
    layer.eval()
    torch.testing.assert_close(layer(x, mask).states, layer(x, mask).states, rtol=0, atol=0)


def test_heads_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="3 heads can't share a size of 8"):
        MultiHead(8, 3, Softmax())
