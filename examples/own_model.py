"""Own model: a PyTorch module that knows nothing of Exegete, and the adapter that lets Exegete ask it.

exegete audit --task file:reviews.csv --model own:file=own_model.py
"""
# ruff: noqa: ARG002, D102

from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import exegete


class Reviewer(nn.Module):
    """The module as its author wrote it: a GRU that reads both ways, attention, and two layers."""

    def __init__(self, words, classes, size=32):
        super().__init__()
        self.embedding = nn.Embedding(words, size, padding_idx=0)
        self.gru = nn.GRU(size, size, batch_first=True, bidirectional=True)
        self.attention = nn.Sequential(nn.Linear(2 * size, size), nn.Tanh(), nn.Linear(size, 1, bias=False))
        self.output = nn.Sequential(nn.Linear(2 * size, size), nn.Tanh(), nn.Linear(size, classes))

    def read(self, embedded, lengths):
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return states

    def forward(self, tokens, lengths):
        states = self.read(self.embedding(tokens), lengths)
        padding = (tokens == 0)[..., None]
        weights = self.attention(states).masked_fill(padding, float("-inf")).softmax(1)
        return self.output((weights * states).sum(1))


class Adapter(exegete.OwnPooling):
    """How Exegete asks it: embed, encode, score, decode; softmax and pooling are left to Exegete."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def embed(self, tokens):
        return self.module.embedding(tokens)

    def states(self, embedded, mask):
        return self.module.read(embedded, mask.sum(1))

    def scores(self, states, mask):
        return self.module.attention(states).squeeze(-1)

    def decode(self, context):
        return self.module.output(context)


def make(words, labels):
    """The adapter for a task: words[0] is padding, words[1] stands for unknown words."""
    return Adapter(Reviewer(len(words), len(labels)))
