"""The rules of LRP: each against a loop over single numbers, by hand, and conserving."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from exegete.importance.relevance import RULES, Dials, Received, RelevantLayers
from tests.importance.slow_lrp import linear_down, shares

DIALS = [Dials(0.001, True), Dials(0.001, False), Dials(0.3, True)]


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def handed_down(kind: str, dials: Dials, relevance: Tensor, *arguments: Tensor) -> tuple[Tensor | None, ...]:
    """The relevance of every argument, through autograd as LRP has it."""
    inputs = [a.clone().requires_grad_() if a.is_floating_point() else a for a in arguments]
    z = RelevantLayers(dials)(kind, *inputs)
    z.backward(relevance)
    return tuple(a.grad for a in inputs)


def slow(dials: Dials) -> dict[str, float]:
    return {"epsilon": dials.epsilon, "delta": float(dials.bias)}


@pytest.mark.parametrize("dials", DIALS)
def test_linear(dials: Dials) -> None:
    x, W, b, R = numbers(4, 3), numbers(5, 3), numbers(5), numbers(4, 5)
    got, *weights = handed_down("linear", dials, R, x, W, b)
    assert weights == [None, None]
    for k in range(4):
        expected = linear_down(W.tolist(), x[k].tolist(), b.tolist(), R[k].tolist(), **slow(dials))
        assert got is not None
        assert got[k].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dials", DIALS)
def test_joined_is_linear_over_both_inputs_with_gated_weights(dials: Dials) -> None:
    x, W, h, U, gate, b, R = (numbers(4, 3), numbers(5, 3), numbers(4, 2), numbers(5, 2), numbers(4, 5).sigmoid(),
                              numbers(4, 5), numbers(5, 4).T)  # fmt: skip
    of_x, _, of_h, _, of_gate, _ = handed_down("joined", dials, R, x, W, h, U, gate, b)
    assert of_gate is None
    for k in range(4):
        both = torch.cat([W, gate[k][:, None] * U], 1)
        expected = linear_down(
            both.tolist(), [*x[k].tolist(), *h[k].tolist()], b[k].tolist(), R[k].tolist(), **slow(dials)
        )
        assert of_x is not None
        assert of_h is not None
        assert [*of_x[k].tolist(), *of_h[k].tolist()] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("length", [1, 2, 6])
@pytest.mark.parametrize("width", [1, 3, 7])
@pytest.mark.parametrize("dials", DIALS)
def test_convolution_is_linear_over_what_a_window_sees_of_the_text(dials: Dials, width: int, length: int) -> None:
    x, W, b, R = numbers(2, length, 3), numbers(4, 3, width), numbers(4), numbers(2, length, 4)
    got = handed_down("convolution", dials, R, x, W, b)[0]
    assert got is not None
    expected = torch.zeros_like(x)
    for k in range(2):
        for t in range(length):
            seen = [s for s in range(t - width // 2, t + width // 2 + 1) if 0 <= s < length]
            for j in range(4):
                places = [(s, d) for s in seen for d in range(3)]
                summands = [float(W[j, d, s - t + width // 2] * x[k, s, d]) for s, d in places]
                for (s, d), share in zip(
                    places, shares(summands, float(b[j]), float(R[k, t, j]), **slow(dials)), strict=True
                ):
                    expected[k, s, d] += share
    assert torch.allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("dials", DIALS)
def test_a_sum_of_two(dials: Dials) -> None:
    a, b, R = numbers(4, 3), numbers(3, 4).T, numbers(5, 3)[:4]
    of_a, of_b = handed_down("sum", dials, R, a, b)
    assert of_a is not None
    assert of_b is not None
    for k in range(4):
        for d in range(3):
            expected = shares([float(a[k, d]), float(b[k, d])], 0.0, float(R[k, d]), **slow(dials))
            assert [float(of_a[k, d]), float(of_b[k, d])] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dials", DIALS)
def test_a_pool_shares_among_words_and_gives_its_weights_nothing(dials: Dials) -> None:
    h, R = numbers(2, 5, 3), numbers(2, 3)
    words = torch.tensor([[False, True, True, True, False], [True, True, True, True, True]])
    alpha = numbers(2, 5).exp() * words
    of_states, of_weights, _ = handed_down("pool", dials, R, h, alpha, words)
    assert of_weights is None
    assert of_states is not None
    for k in range(2):
        attended = words[k].nonzero()[:, 0].tolist()
        for d in range(3):
            summands = [float(alpha[k, t] * h[k, t, d]) for t in attended]
            expected = shares(summands, 0.0, float(R[k, d]), **slow(dials))
            assert of_states[k, attended, d].tolist() == pytest.approx(expected, abs=1e-12)
    assert of_states[0, [0, 4]].abs().sum() == 0


def test_signals_take_all_and_activations_hand_on() -> None:
    gate, signal, R = numbers(4, 3).sigmoid(), numbers(3, 4).T, numbers(5, 3)[:4]
    of_gate, of_signal = handed_down("gate", DIALS[0], R, gate, signal)
    assert of_gate is None
    assert of_signal is not None
    assert torch.equal(of_signal, R)
    for kind in ("tanh", "relu"):
        (of_x,) = handed_down(kind, DIALS[0], R, signal)
        assert of_x is not None
        assert torch.equal(of_x, R)


def test_by_hand() -> None:
    """z = 2·3 − 1·4 + 1 = 3, R = 6: with ε = 1, inputs get (6 + 2/2)/4 · 6 and (−4 + 2/2)/4 · 6."""
    x, W, b = torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, -1.0]]), torch.tensor([1.0])
    for dials, expected in ((Dials(1.0, True), [10.5, -4.5]), (Dials(1.0, False), [9.75, -5.25])):
        got = handed_down("linear", dials, torch.tensor([[6.0]]), x, W, b)[0]
        assert got is not None
        assert got.tolist() == [expected]


def test_the_sign_of_zero_is_plus_one() -> None:
    """1 − 1 = 0: (1 + ε/2) / ε and (−1 + ε/2) / ε of R = 1, which sum to 1."""
    got = handed_down("sum", Dials(0.5, True), torch.ones(1), torch.ones(1), -torch.ones(1))
    assert [float(part) for part in got if part is not None] == [2.5, -1.5]
    out = Received(torch.tensor([0.0, -0.0]), torch.ones(2), Dials(0.5, True))
    assert out.rate.tolist() == [2.0, 2.0]


SHAPES: dict[str, list[tuple[int, ...]]] = {
    "linear": [(1, 2), (3, 2), (3,)],
    "joined": [(1, 2), (3, 2), (1, 2), (3, 2), (1, 3), (1, 3)],
    "convolution": [(1, 3, 2), (2, 2, 3), (2,)],
    "sum": [(1, 3), (1, 3)],
    "pool": [(1, 3, 2), (1, 3)],
}


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from([*SHAPES]))
def test_with_the_bias_shared_nothing_is_lost(data: st.DataObject, kind: str) -> None:
    def some(shape: tuple[int, ...]) -> Tensor:
        count = math.prod(shape)
        drawn = data.draw(st.lists(st.floats(-5, 5, width=32), min_size=count, max_size=count))
        return torch.tensor(drawn, dtype=torch.float64).view(shape)

    arguments = [some(shape) for shape in SHAPES[kind]]
    if kind == "pool":
        words = torch.tensor([[True, False, True]])
        arguments = [arguments[0], arguments[1] * words, words]
    R = some(tuple(RULES[kind].compute(*arguments).shape))
    shared = torch.cat([part.flatten() for part in handed_down(kind, DIALS[0], R, *arguments) if part is not None])
    assert shared.sum().item() == pytest.approx(R.sum().item(), abs=1e-9 * (1 + shared.abs().sum().item()))
