"""Relevance: how a layer hands the relevance of its output down to its inputs (LRP-ε; Arras et al. 2017, 2019).

There is one rule. An output z = Σ_i z_i + b with N summands, which has received the relevance R, gives its summand i

    R_i = (z_i + (ε sgn z + δ b) / N) / (z + ε sgn z) · R,    sgn 0 = +1.

ε keeps the denominator away from 0. Nothing is lost, Σ_i R_i = R, if the bias is shared (δ = 1) or 0. What multiplies a
signal is a gate and no summand: of gate × signal, all relevance goes to the signal. Activations hand on what they got.

Relevance runs backwards as gradients do: it adds up where a value was used twice, and finds its way through slices. So
autograd carries it, with the rule of a layer in the place of its derivative.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Dials(NamedTuple):
    """ε, and whether inputs share the bias (δ = 1) or it keeps its part of the relevance (δ = 0)."""

    epsilon: float
    bias: bool


class Received(NamedTuple):
    """The output of a layer and the relevance that arrived there."""

    z: Tensor
    relevance: Tensor
    dials: Dials

    @property
    def rate(self) -> Tensor:
        """R / (z + ε sgn z), the relevance of one unit of z."""
        return self.relevance / (self.z + self._epsilon)

    def rest(self, bias: Tensor | float = 0.0) -> Tensor:
        """The relevance that belongs to no summand, for all to share: that of ε sgn z + δ b."""
        return (self._epsilon + bias * self.dials.bias) * self.rate

    @property
    def _epsilon(self) -> Tensor:
        return torch.full_like(self.z, self.dials.epsilon).where(self.z >= 0, -self.dials.epsilon)


Shares = tuple[Tensor | None, ...]  # the relevance of every argument of a layer; None for weights, biases and gates


def linear(out: Received, x: Tensor, weight: Tensor, bias: Tensor) -> Shares:
    """z_j = Σ_i w_ji x_i + b_j: N is the number of inputs."""
    rest = out.rest(bias).sum(-1, keepdim=True) / x.shape[-1]
    return x * (out.rate @ weight) + rest, None, None


def joined(out: Received, x: Tensor, W: Tensor, h: Tensor, U: Tensor, gate: Tensor, bias: Tensor) -> Shares:
    """z = W x + gate ⊙ (U h) + b: one linear layer over x and h, whose weights on h are gate ⊙ U."""
    rest = out.rest(bias).sum(-1, keepdim=True) / (x.shape[-1] + h.shape[-1])
    return x * (out.rate @ W) + rest, None, h * ((gate * out.rate) @ U) + rest, None, None, None


def convolution(out: Received, x: Tensor, weight: Tensor, bias: Tensor) -> Shares:
    """A linear layer over every window; N counts inputs inside the text only, so nothing is lost beyond its ends."""
    size, width = weight.shape[1:]
    window, pad = x.new_ones(1, 1, width), width // 2
    inside = functional.conv1d(x.new_ones(1, 1, x.shape[1]), window, padding=pad)  # [1, 1, token]: tokens seen
    rest = out.rest(bias).sum(-1)[:, None] / (size * inside)  # [batch, 1, token]: what a window gives to each input
    shared = functional.conv1d(
        rest, window, padding=pad
    )  # [batch, 1, token]: what a token gets from all windows around it
    summands = x * functional.conv_transpose1d(out.rate.mT, weight, padding=pad).mT  # [batch, token, size]
    return summands + shared.mT, None, None


def total(out: Received, a: Tensor, b: Tensor) -> Shares:
    """z = a + b: N = 2."""
    rest = out.rest() / 2
    return a * out.rate + rest, b * out.rate + rest


def pool(out: Received, states: Tensor, weights: Tensor, words: Tensor) -> Shares:
    """z = Σ_t α_t h_t with α as gates: N is the number of words."""
    count = words.sum(-1, keepdim=True).clamp(min=1)  # [batch, 1]; without any word, nobody gets anything
    summands = weights[..., None] * states * out.rate[:, None]  # [batch, token, size]
    return (summands + (out.rest() / count)[:, None]) * words[..., None], None, None


def gated(out: Received, gate: Tensor, signal: Tensor) -> Shares:  # noqa: ARG001 (a rule sees all that its layer saw)
    """z = gate ⊙ signal: the gate gets nothing."""
    return None, out.relevance


def handed_on(out: Received, x: Tensor) -> Shares:  # noqa: ARG001
    """z = f(x), one by one."""
    return (out.relevance,)


class Rule(NamedTuple):
    """What a kind of layer computes, and what it gives its arguments of the relevance of its output."""

    compute: Callable[..., Tensor]
    share: Callable[..., Shares]


RULES: dict[str, Rule] = {
    "linear": Rule(functional.linear, linear),
    "joined": Rule(lambda x, W, h, U, gate, bias: x @ W.mT + gate * (h @ U.mT) + bias, joined),
    "convolution": Rule(lambda x, W, b: functional.conv1d(x.mT, W, b, padding=W.shape[-1] // 2).mT, convolution),
    "sum": Rule(torch.add, total),
    "pool": Rule(lambda states, weights, _words: (weights[..., None] * states).sum(1), pool),
    "gate": Rule(torch.mul, gated),
    "tanh": Rule(torch.tanh, handed_on),
    "relu": Rule(torch.relu, handed_on),
}


class _Carried(torch.autograd.Function):
    """A layer whose backward pass is its rule."""

    @staticmethod
    def forward(ctx: Any, kind: str, dials: Dials, *arguments: Tensor) -> Tensor:
        z = RULES[kind].compute(*arguments)
        ctx.kind, ctx.dials = kind, dials
        ctx.save_for_backward(z, *arguments)
        return z

    @staticmethod
    def backward(ctx: Any, *received: Tensor) -> Any:
        (relevance,), (z, *arguments) = received, ctx.saved_tensors
        return None, None, *RULES[ctx.kind].share(Received(z, relevance, ctx.dials), *arguments)


class RelevantLayers(NamedTuple):
    """Layers that compute as usual and carry relevance backwards: `layers("linear", x, weight, bias)`."""

    dials: Dials

    def __call__(self, kind: str, *arguments: Tensor) -> Tensor:
        """Run one layer of a kind that `RULES` names."""
        z: Tensor = _Carried.apply(kind, self.dials, *arguments)  # type: ignore[no-untyped-call]
        return z
