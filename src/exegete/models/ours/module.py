"""What all of our own models share: a name with settings, a vocabulary, and a table of embeddings."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from exegete.base.names import parse
from exegete.models.contract import Intervention, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, Vocabulary


class Embedded(Protocol):
    """Settings of a table of embeddings."""

    @property
    def size(self) -> int:
        """Of random embeddings; vectors have their own."""

    @property
    def scale(self) -> float:
        """Standard deviation of random embeddings."""

    @property
    def trainable(self) -> bool:
        """Whether training moves them."""


class Model(nn.Module, ABC):
    """A model that can be trained, kept as a checkpoint and asked: an `AttentionModel` with a name."""

    embedding: nn.Embedding

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int) -> None:
        super().__init__()
        self.spec, self.vocabulary, self.labels, self.size = spec, vocabulary, labels, size

    @property
    def name(self) -> str:
        """The catalogue's name: bilstm, pair, translator, …"""
        return parse(self.spec).name

    @property
    @abstractmethod
    def sites(self) -> tuple[str, ...]:
        """Names of the places where attention weights are computed."""

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The embeddings of the first text, of the second, …; the last table is that of all further ones."""
        return (self.embedding,)

    def embed(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""
        embedded: Tensor = self.embedding(batch.tokens)
        return embedded

    @abstractmethod
    def trace(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Trace:
        """Predict, with weights and states."""

    @abstractmethod
    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else."""

    def penalty(self) -> Tensor | float:
        """What training adds to the loss of the batch that was just traced."""
        return 0.0


def embeddings(vocabulary: Vocabulary, size: int) -> nn.Embedding:
    """A table with a row per word, to be filled by `draw`."""
    return nn.Embedding(len(vocabulary), size, padding_idx=PAD)


def draw(table: nn.Embedding, settings: Embedded) -> None:
    """Normal numbers of the given scale; padding is 0."""
    nn.init.normal_(table.weight, std=settings.scale)
    with torch.no_grad():
        table.weight[PAD] = 0
    table.weight.requires_grad_(settings.trainable)
