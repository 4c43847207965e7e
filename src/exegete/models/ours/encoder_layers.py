"""The encoders once more, layer by layer: whoever runs them says what a layer of a kind does (`Relevant`).

They compute what `models.ours.encoders` computes, in float64, for texts of one length. Gates are computed beside the
layers, from detached values: nothing flows into them.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from exegete.models.capabilities import LayersByKind
from exegete.models.ours.encoders import CNN, Average, BiGRU, BiLSTM, Identity


class LayeredText(NamedTuple):
    """A text as an encoder has read it."""

    states: Tensor  # [batch, token, size]
    initial: tuple[Tensor, ...] = ()  # [way, batch, hidden] each: zeros, but they share in ε and in biases
    end: tuple[Tensor, ...] = ()  # [way, batch, hidden] each: what both ways remember after their last token


def weight_and_bias(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """A linear layer's weight and bias, in float64."""
    return layer.get_parameter("weight").detach().double(), layer.get_parameter("bias").detach().double()


@torch.no_grad()
def in_double(module: nn.Module, *arguments: Tensor) -> Tensor:
    """What a module computes, in float64; it stays as it is."""
    weights = {name: weight.double() for name, weight in module.named_parameters()}
    result: Tensor = functional_call(module, weights, arguments)
    return result


def average(encoder: Average, x: Tensor, layers: LayersByKind) -> LayeredText:
    """h = act(P x + b)."""
    return LayeredText(layers(encoder.activation_name, layers("linear", x, *weight_and_bias(encoder.linear))))


def identity(encoder: Identity, x: Tensor, layers: LayersByKind) -> LayeredText:
    """h = x."""
    del encoder, layers
    return LayeredText(x)


def cnn(encoder: CNN, x: Tensor, layers: LayersByKind) -> LayeredText:
    """h = relu of all convolutions, side by side."""
    sides = [layers("convolution", x, *weight_and_bias(part)) for part in encoder.convolutions]
    return LayeredText(layers("relu", torch.cat(sides, -1)))


class _LayerWeights(NamedTuple):
    """The weights of a recurrent layer: of both ways, and of each gate and the signal in PyTorch's order."""

    W: Tensor  # [way, gate, hidden, size]
    U: Tensor  # [way, gate, hidden, hidden]
    b: Tensor  # [way, gate, hidden], beside W x
    b_: Tensor  # [way, gate, hidden], beside U h

    def of_words(self, x: Tensor) -> Tensor:
        """W x + b of all words at once."""  # [way, batch, token, size] -> [way, batch, token, gate, hidden]
        product = x.detach().flatten(1, 2) @ self.W.flatten(1, 2).mT
        return product.view(*x.shape[:3], *self.b.shape[1:]) + self.b[:, None, None]

    def gates(self, of_word: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """σ(W x + b + U h + b') of every gate; that of the signal means nothing."""  # [way, batch, hidden] each
        of_state = (h.detach() @ self.U.flatten(1, 2).mT).view_as(of_word) + self.b_[:, None]
        return (of_word + of_state).sigmoid().unbind(2)

    def signal(self) -> tuple[Tensor, ...]:
        """W, U, b and b' of what is no gate, third in both LSTM and GRU."""
        return self.W[:, 2], self.U[:, 2], self.b[:, None, 2], self.b_[:, None, 2]


LayerMemory = tuple[Tensor, ...]  # h, and c in an LSTM: [way, batch, hidden]
LayerCell = Callable[[_LayerWeights, Tensor, Tensor, LayerMemory, LayersByKind], LayerMemory]


def _lstm(weights: _LayerWeights, x: Tensor, of_word: Tensor, memory: LayerMemory, layers: LayersByKind) -> LayerMemory:
    """g = tanh(W x + U h + b),  c ← i ⊙ g + f ⊙ c,  h ← o ⊙ tanh c."""
    (h, c), (W, U, b, b_) = memory, weights.signal()
    i, f, _, o = weights.gates(of_word, h)
    g = layers("tanh", layers("joined", x, W, h, U, torch.ones_like(h), b + b_))
    c = layers("sum", layers("gate", i, g), layers("gate", f, c))
    return layers("gate", o, layers("tanh", c)), c


def _gru(weights: _LayerWeights, x: Tensor, of_word: Tensor, memory: LayerMemory, layers: LayersByKind) -> LayerMemory:
    """n = tanh(W x + b + r ⊙ (U h + b')),  h ← (1 − z) ⊙ n + z ⊙ h."""
    (h,), (W, U, b, b_) = memory, weights.signal()
    r, z, _ = weights.gates(of_word, h)
    n = layers("tanh", layers("joined", x, W, h, U, r, b + r * b_))
    return (layers("sum", layers("gate", 1 - z, n), layers("gate", z, h)),)


def _weights(layer: nn.LSTM | nn.GRU) -> _LayerWeights:
    def both(name: str) -> Tensor:
        ways = [layer.get_parameter(f"{name}_l0{way}").detach().double() for way in ("", "_reverse")]
        return torch.stack(ways).view(2, -1, layer.hidden_size, *ways[0].shape[1:])

    return _LayerWeights(both("weight_ih"), both("weight_hh"), both("bias_ih"), both("bias_hh"))


def _both_ways(
    layer: nn.LSTM | nn.GRU, cell: LayerCell, x: Tensor, layers: LayersByKind, start: LayerMemory
) -> LayeredText:
    """A cell from left to right and one from right to left, side by side, both from zero states or from given ones.

    The relevance of given states goes on to what made them.
    """
    weights, ways = _weights(layer), torch.stack([x, x.flip(1)])  # [way, batch, token, size]
    memories = 2 if isinstance(layer, nn.LSTM) else 1
    zeros = () if start else tuple(x.new_zeros(2, len(x), layer.hidden_size).requires_grad_() for _ in range(memories))
    memory, states = start or zeros, []
    for word, of_word in zip(ways.unbind(2), weights.of_words(ways).unbind(2), strict=True):
        memory = cell(weights, word, of_word, memory, layers)
        states.append(memory[0])
    right, left = torch.stack(states, 2)  # [batch, token, hidden] each, in the order of their reading
    return LayeredText(torch.cat([right, left.flip(1)], -1), zeros, memory)


def bilstm(encoder: BiLSTM, x: Tensor, layers: LayersByKind, start: LayerMemory = ()) -> LayeredText:
    """Two LSTMs; h and c start at zero, or where another encoder ended."""
    return _both_ways(encoder.lstm, _lstm, x, layers, start)


def bigru(encoder: BiGRU, x: Tensor, layers: LayersByKind, start: LayerMemory = ()) -> LayeredText:
    """Two GRUs; h starts at zero, or where another encoder ended."""
    return _both_ways(encoder.gru, _gru, x, layers, start)


_ENCODERS: dict[type[nn.Module], Callable[..., LayeredText]] = {
    BiLSTM: bilstm,
    BiGRU: bigru,
    Average: average,
    CNN: cnn,
    Identity: identity,
}


def read_by(encoder: nn.Module, x: Tensor, layers: LayersByKind, *start: LayerMemory) -> LayeredText:
    """A text as an encoder of ours reads it."""
    return _ENCODERS[type(encoder)](encoder, x, layers, *start)


def kinds_of_layers(encoder: nn.Module) -> tuple[str, ...]:
    """The kinds of layers of an encoder, from the words up."""
    if isinstance(encoder, Average):
        return "linear", encoder.activation_name
    recurrent = ("joined", "tanh", "gate", "sum")
    return {BiLSTM: (*recurrent, "tanh"), BiGRU: recurrent, CNN: ("convolution", "relu")}.get(type(encoder), ())
