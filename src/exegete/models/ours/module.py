"""What all of our own models share: a name with settings, a vocabulary, and a table of embeddings."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.base.names import parse
from exegete.base.pauses import pause
from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Readout, ReplacedBy, Trace, refuse_foreign
from exegete.models.projections import Projection
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import PAD, SPECIAL, UNKNOWN, Vocabulary

KeptSites = Collection[str] | None  # the sites of which a trace keeps weights and states; None: all


class Weighted(Protocol):
    """What has weights."""

    def state_dict(self) -> dict[str, Any]:
        """By name."""


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
    """A model of ours: a `Predictor` that is `Trainable`."""

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
    def readout(self) -> Readout | None:
        """The last attention, which pools; None where there is none."""
        return Readout(self.sites[-1:], gated=self.gated) if self.sites else None

    @property
    def gated(self) -> bool:
        """Whether weights are gates, which don't sum to 1."""
        return getattr(getattr(self, "settings", None), "projection", None) == "gates"

    @property
    def reader(self) -> Vocabulary:
        """Its vocabulary."""
        return self.vocabulary

    @property
    def device(self) -> torch.device:
        """That of its weights."""
        tensors = [*self.parameters(), *self.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """That of its weights."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.get_default_dtype())

    @property
    def as_it_is(self) -> bool:
        """No: what we build is to be trained."""
        return False

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The embeddings of the first text, of the second, …; the last table is that of all further ones."""
        return (self.embedding,)

    def fingerprint(self) -> str:
        """Of weights, vocabulary, classes and name."""
        parts = (self.spec, self.labels, self.reader.fingerprint, weights_hash(self))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def state(self) -> dict[str, Any]:
        """Name, size, classes and vocabulary."""
        words = {"wrap": self.vocabulary.wrap, "words": self.vocabulary.words}
        return {"model": self.spec, "size": self.size, "labels": self.labels, **words}

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Examples by its own vocabulary."""
        return collate(examples, self.vocabulary).to(self.device)

    def embed(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""
        refuse_foreign(batch, self.reader)
        return self.looked_up(batch)

    def looked_up(self, batch: Batch) -> Tensor:
        """The row of every token, [batch, token, size]."""
        embedded: Tensor = self.embedding(batch.tokens)
        return embedded

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        """Embeddings with some words replaced; start and end symbols can't be."""
        if by in ("unknown", "padding"):
            token = UNKNOWN if by == "unknown" else PAD
            return self.embed(batch._replace(tokens=torch.where(words, token, batch.tokens)))
        embedded = self.embed(batch)
        return torch.where(words[..., None], self._mean_word(batch) if by == "mean" else 0.0, embedded)

    def _mean_word(self, batch: Batch) -> Tensor:
        """The mean embedding of all words, by the table of each token's text: [batch, token, size]."""
        if not self.vocabulary.words:
            raise UsageError("a mean word needs a vocabulary with words: lower the task's min_df")
        means = torch.stack([table.weight[len(SPECIAL) :].mean(0) for table in self.tables])  # [text, size]
        return means[batch.part.clamp(min=0, max=len(means) - 1)]

    def logits(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Tensor:
        """[batch, class], and nothing kept."""
        return self.trace(batch, embedded=embedded, intervene=intervene, keep=()).logits

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: KeptSites = None,
    ) -> Trace:
        """Predict, with weights and states of the sites to keep; None: of all."""
        refuse_foreign(batch, self.reader)
        pause()
        return self._trace(batch, embedded, intervene, keep).only(keep)

    @abstractmethod
    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        """Predict by the model's own layers; what is not to be kept need not be computed."""

    @abstractmethod
    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else."""

    def penalty(self) -> Tensor | float:
        """What training adds to the loss of the batch that was just traced."""
        return 0.0


class Projecting:
    """The last attention of a model that pools: scores through one projection, and no null key."""

    project: Projection

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Scores [..., key] to weights."""
        weights: Tensor = self.project(scores, mask)
        return weights

    def null_keys(self, encoded: Encoded) -> Tensor | None:  # noqa: ARG002
        """Keys of value 0 that take the weight that no word has, [batch, key]; None: this model has none."""
        return None


_Hashed = dict[Weighted, tuple[object, str]]
_hashed: ContextVar[_Hashed | None] = ContextVar("hashed", default=None)


@contextmanager
def hashed_once() -> Iterator[None]:
    """Inside, the weights of a module are hashed once, until something writes to them. Inner blocks join it."""
    if _hashed.get() is not None:
        yield
        return
    before = _hashed.set({})
    try:
        yield
    finally:
        _hashed.reset(before)


def weights_hash(module: Weighted) -> str:
    """A fingerprint of a module's weights."""
    known, tensors = _hashed.get(), module.state_dict()
    if known is None or any(tensor.is_inference() for tensor in tensors.values()):  # these don't count what is written
        return hash_tensors(tensors)
    state = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors.values())
    if known.get(module, (None, ""))[0] != state:
        known[module] = (state, hash_tensors(tensors))
    return known[module][1]


def _bytes(tensor: Tensor) -> bytes:
    """A tensor's own, also of a precision that numpy doesn't know."""
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """A fingerprint of named tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode() + _bytes(tensor))
    return digest.hexdigest()[:16]


def embeddings(vocabulary: Vocabulary, size: int) -> nn.Embedding:
    """A table with a row per word, to be filled by `draw_normal`."""
    return nn.Embedding(len(vocabulary), size, padding_idx=PAD)


def draw_normal(table: nn.Embedding, settings: Embedded) -> None:
    """Normal numbers of the given scale; padding is 0."""
    nn.init.normal_(table.weight, std=settings.scale)
    with torch.no_grad():
        table.weight[PAD] = 0
    table.weight.requires_grad_(settings.trainable)
