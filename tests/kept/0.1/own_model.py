"""A module of somebody's own and its adapter, as version 0.1 asked for them."""

import torch
from torch import Tensor, nn

import exegete


class Reviewer(exegete.OwnPooling):
    """Single words through one layer, attention, and a linear decoder."""

    def __init__(self, words: int, classes: int, size: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size, padding_idx=0)
        self.layer = nn.Linear(size, size)
        self.attention = nn.Linear(size, 1, bias=False)
        self.output = nn.Linear(size, classes)

    def embed(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(tokens)
        return embedded

    def states(self, embedded: Tensor, mask: Tensor) -> Tensor:
        return torch.tanh(self.layer(embedded)) * mask[..., None]

    def scores(self, states: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = self.attention(states)
        return scores.squeeze(-1)

    def decode(self, context: Tensor) -> Tensor:
        logits: Tensor = self.output(context)
        return logits


def make(words: list[str], labels: list[str]) -> Reviewer:
    return Reviewer(len(words), len(labels))
