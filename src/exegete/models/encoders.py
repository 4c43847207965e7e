"""Encoders: embedded tokens to one state per token (Jain & Wallace 2019, section 2; PROTOCOLS 1.1).

Every encoder gives a text the same states alone and padded in a batch.
"""

from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Encoder(Protocol):
    """Embedded tokens [batch, token, size] and which are present [batch, token] to states [batch, token, out]."""

    out: int

    def __call__(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Encode; states of padding are 0."""


class BiLSTM(nn.Module):
    """One bidirectional LSTM layer; a state is the forward and the backward one side by side."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.out = 2 * hidden

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Both directions, over the tokens that are present."""
        return _recurrent(self.lstm, embedded, present)


class BiGRU(nn.Module):
    """One bidirectional GRU layer (Cho et al. 2014); a state is the forward and the backward one side by side."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(size, hidden, batch_first=True, bidirectional=True)
        self.out = 2 * hidden

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Both directions, over the tokens that are present."""
        return _recurrent(self.gru, embedded, present)


def _recurrent(layer: nn.LSTM | nn.GRU, embedded: Tensor, present: Tensor) -> Tensor:
    """Without padding a plain call, which is faster; otherwise packed, so that nothing leaks from padding."""
    if bool(present.all()):
        return layer(embedded)[0]  # type: ignore[no-any-return]
    lengths = present.sum(-1).clamp(min=1).cpu()  # a text without words: one padding token, never attended to
    packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    states = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=embedded.shape[1])[0]
    return states * present[..., None]


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
