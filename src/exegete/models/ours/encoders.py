"""Encoders: embedded tokens to one state per token (Jain & Wallace 2019, section 2).

Every encoder gives a text the same states alone and padded in a batch.
"""

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from exegete.base.places import places


class Encoder(Protocol):
    """Embedded tokens [batch, token, size] and which are present [batch, token] to states [batch, token, out]."""

    out: int

    def __call__(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Encode; states of padding are 0."""


Memory = tuple[Tensor, ...]  # where a recurrent encoder stands: h, and c of an LSTM, [direction, batch, hidden] each


class EncodedText(NamedTuple):
    """A text as a recurrent encoder has read it."""

    states: Tensor  # [batch, token, out]
    end: Memory  # of both directions, after all of their tokens; 0 for a text without any


class BiLSTM(nn.Module):
    """One bidirectional LSTM layer; a state is the forward and the backward one side by side."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.out = 2 * hidden

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Both directions, over the tokens that are present."""
        return _states(self.lstm, embedded, present)

    def read(self, embedded: Tensor, present: Tensor, start: Memory | None = None) -> EncodedText:
        """States [batch, token, size], beginning where another encoder has ended, and where this one ends."""
        return _recurrent(self.lstm, embedded, present, start)


class BiGRU(nn.Module):
    """A bidirectional GRU (Cho et al. 2014); a state is the forward and the backward one side by side."""

    def __init__(self, size: int, hidden: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        between = dropout if layers > 1 else 0.0  # there is nothing between the layers of one
        self.gru = nn.GRU(size, hidden, layers, batch_first=True, bidirectional=True, dropout=between)
        self.out = 2 * hidden

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Both directions, over the tokens that are present."""
        return _states(self.gru, embedded, present)

    def read(self, embedded: Tensor, present: Tensor, start: Memory | None = None) -> EncodedText:
        """States [batch, token, size], beginning where another encoder has ended, and where this one ends."""
        return _recurrent(self.gru, embedded, present, start)


PACKED = 1.6  # a packed token costs as much as so many others, in batches of every size


def _states(layer: nn.LSTM | nn.GRU, embedded: Tensor, present: Tensor) -> Tensor:
    """Every text's states: with little padding each direction runs over all of it, from the text's own first token.

    Padding is at the end, so the direction that reads forwards has not seen it; for the other one every text is turned
    round within its own length. That is what a text alone does, to the last digit.
    """
    count = present.numel()
    if layer.num_layers > 1 or count == (there := int(present.sum())) or count > PACKED * there:
        return _recurrent(layer, embedded, present, None).states
    turned = (present.sum(-1, keepdim=True) - 1 - torch.arange(present.shape[1], device=present.device)).clamp(min=0)
    forward = _one_way(layer, "", embedded)
    backward = _one_way(layer, "_reverse", _turned(embedded, turned))
    return torch.cat([forward, _turned(backward, turned)], -1) * present[..., None]


def _turned(values: Tensor, order: Tensor) -> Tensor:
    """Tokens [batch, token, size] in another order."""
    return values.gather(1, order[..., None].expand(-1, -1, values.shape[-1]))


def _one_way(layer: nn.LSTM | nn.GRU, direction: str, embedded: Tensor) -> Tensor:
    """One direction of a bidirectional layer over all tokens in their order."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(layer, f"{name}_l0{direction}") for name in names]
    start = embedded.new_zeros(1, embedded.shape[0], layer.hidden_size)
    if isinstance(layer, nn.LSTM):
        return torch.lstm(embedded, (start, start), weights, True, 1, 0.0, layer.training, False, True)[0]
    return torch.gru(embedded, start, weights, True, 1, 0.0, layer.training, False, True)[0]


def _recurrent(layer: nn.LSTM | nn.GRU, embedded: Tensor, present: Tensor, start: Memory | None) -> EncodedText:
    """Without padding a plain call, which is faster; otherwise packed, so that nothing leaks from padding."""
    first = start[0] if start is not None and len(start) == 1 else start  # a GRU has one memory, and takes no tuple
    if bool(present.all()):
        states, end = layer(embedded, first)
        return EncodedText(states, end if isinstance(end, tuple) else (end,))
    lengths = present.sum(-1).clamp(min=1).cpu()  # a text without words: one padding token, never attended to
    packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    states, end = layer(packed, first)
    unpacked = pad_packed_sequence(states, batch_first=True, total_length=embedded.shape[1])[0]
    some = present.any(-1)[:, None]
    return EncodedText(
        unpacked * present[..., None], tuple(m * some for m in (end if isinstance(end, tuple) else (end,)))
    )


class Average(nn.Module):
    """h_t = act(P e_t + b): every word on its own."""

    def __init__(self, size: int, hidden: int, activation: Literal["tanh", "relu"] = "tanh") -> None:
        super().__init__()
        self.linear = nn.Linear(size, hidden)
        self.activation_name = activation
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.out = hidden

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """One linear layer and its activation."""
        return self.activation(self.linear(embedded)) * present[..., None]


class Identity(nn.Module):
    """h_t = e_t: no encoder."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.out = size

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """The embeddings, 0 on padding."""
        return embedded * present[..., None]


class CNN(nn.Module):
    """Convolutions of several odd widths with ReLU, side by side: a state sees its neighbours."""

    def __init__(self, size: int, hidden: int, widths: tuple[int, ...] = (1, 3, 5, 7)) -> None:
        super().__init__()
        self.widths = widths
        filters = hidden // len(widths)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width, padding=width // 2) for width in widths)
        self.out = filters * len(widths)

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Padding is zero before and after, as beyond the ends of a text."""
        inside = (embedded * present[..., None]).transpose(1, 2)  # [batch, size, token]
        states = torch.cat([convolution(inside) for convolution in self.convolutions], 1).relu()
        return states.transpose(1, 2) * present[..., None]


def summarise_text(encoder: nn.Module, states: Tensor, present: Tensor, words: Tensor) -> Tensor:
    """What an encoder makes of a text as a whole, its "last state"; 0 where no token is present: [batch, out].

    Of a BiLSTM or BiGRU the forward state at the last token beside the backward state at the first, where each
    direction has read everything; of `average` and without an encoder the mean over words; of `cnn` the maximum over
    words.
    """
    if isinstance(encoder, Average | Identity):
        return (states * words[..., None]).sum(1) / words.sum(-1).clamp(min=1)[:, None]
    if isinstance(encoder, CNN):  # states are never below 0, so zeros in place of other tokens change nothing
        return (states * words[..., None]).amax(1)
    return _ends(states, present)


def _ends(states: Tensor, present: Tensor) -> Tensor:
    """The forward half at the last token that is present, the backward half at the first."""  # [batch, size]
    place = places(present)
    last = (present * place).amax(-1)
    first = present.byte().argmax(-1)
    forward, backward = states.chunk(2, -1)
    rows = places(states, 0)
    return torch.cat([forward[rows, last], backward[rows, first]], -1)
