"""Heads of ours on the last states of an encoder of transformers, for models that come without a classifier.

- `cls`: a linear map of the state of the first piece, as BERT's classifiers have (Devlin et al. 2019, section 3.2).
- `mean`: of the mean state of all pieces.
- `attention`: the state of a word is the mean of its pieces', and an attention over words pools them (Jain & Wallace
  2019, section 2). Its one row is all that a prediction reads, so that the tests of the debate that rewrite pooled
  attention can be asked of a transformer.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Query, Readout, Site, Trace
from exegete.models.huggingface.labels import class_order
from exegete.models.huggingface.load import LoadedParts
from exegete.models.huggingface.model import HuggingFace, ModelOutput
from exegete.models.ours.attention import SCORERS
from exegete.models.ours.classifier import SITE, own_places
from exegete.models.ours.module import Projecting
from exegete.models.projections import PROJECTIONS, Projection
from exegete.tasks.batching import Batch

CAUSAL = "decoder."  # sites where words look back only


class OurHead(HuggingFace):
    """The first state, or the mean of all, is decoded; `trained` says that the head was, elsewhere."""

    def __init__(self, spec: str, parts: LoadedParts, labels: tuple[str, ...], trained: bool = False) -> None:
        super().__init__(spec, parts, labels)
        if self.query == "first" and all(site.startswith(CAUSAL) for site in self.self_attention):
            raise UsageError(
                f"words of {self.who} look back only, and its first piece sees nothing of a text: use head=mean"
            )
        self.trained_before = trained
        self._make_head(int(parts.base.config.hidden_size))
        self.to(self.dtype)

    def _make_head(self, size: int) -> None:
        self.decoder = nn.Linear(size, len(self.labels))

    @property
    def as_it_is(self) -> bool:
        """Whether its head came trained."""
        return self.trained_before

    @property
    def readout(self) -> Readout:
        """The last layer, as the first piece sees it, or as all do."""
        return Readout(self.sites[-1:], self.query, self.proof.gated)

    @property
    def query(self) -> Query:
        """The first piece's, or those of all."""
        return "every" if self.is_mean else "first"

    @property
    def is_mean(self) -> bool:
        """Whether all states are read."""
        return self.settings.head == "mean"

    def relabelled(self, labels: tuple[str, ...]) -> "OurHead":
        """The model with the rows of its decoder in another order."""
        model = type(self)(self.spec, LoadedParts(self.base, self.tokenizer, self.place), labels, self.trained_before)
        order = class_order(self.labels, labels, self.settings.labels, self.who)
        model.load_state_dict(model.state_dict() | reorder_head(self.head(), order))
        model.proof = self.proof
        return model.eval()

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """Of the decoder."""
        yield from self.decoder.parameters()

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """A linear map of what is read."""
        del batch
        states: Tensor = read.output.last_hidden_state  # [batch, piece, size]
        real = read.pieces.real[..., None].to(states.dtype)
        context = (states * real).sum(1) / real.sum(1).clamp(min=1) if self.is_mean else states[:, 0]
        logits: Tensor = self.decoder(context)
        return logits


class PooledHead(Projecting, OurHead):
    """An attention over words pools their states."""

    def _make_head(self, size: int) -> None:
        self.scorer = SCORERS["tanh"](size)
        self.project: Projection = PROJECTIONS["softmax"].load()()
        super()._make_head(size)

    @property
    def sites(self) -> tuple[str, ...]:
        """Every layer, then the pooling attention."""
        return *self.self_attention, SITE

    @property
    def readout(self) -> Readout:
        """The pooling attention."""
        return Readout(self.sites[-1:])

    @property
    def query(self) -> Query:
        """The pooling attention has one."""
        return "only"

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """Queries and keys of every layer, then the scorer."""
        yield from super().attention_parameters()
        yield from self.scorer.parameters()

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """Of the decoder and the scorer."""
        yield from super().head_parameters()
        yield from self.scorer.parameters()

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """States, scores and W h_t, once; `intervene` acts in the layers."""
        return self._pooling(self.read(batch, embedded, intervene), batch)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """logits = Σ_t α_t (W h_t) + b for every draw of weights."""
        assert encoded.values is not None
        return weights @ encoded.values + self.decoder.bias  # [batch, draw, class]

    def _pooling(self, read: ModelOutput, batch: Batch) -> Encoded:
        """A word without pieces is no key."""
        states = read.pieces.states_of_words(read.output.last_hidden_state)
        mask = batch.words & (read.pieces.member.sum(1) > 0)
        return Encoded(states, self.scorer(states), mask, states @ self.decoder.weight.T)

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """Under its own weights."""
        encoded = self._pooling(read, batch)
        return self.decode(encoded, self.weigh(encoded.scores, encoded.mask)[:, None])[:, 0]

    def told(self, read: ModelOutput, batch: Batch, intervene: Intervention | None) -> Trace:
        """What a pass tells, and the pooling attention after it."""
        encoded = self._pooling(read, batch)
        scores, mask = encoded.scores[:, None, None], encoded.mask[:, None, None]  # [batch, 1, 1, key]
        weights: Tensor = self.project(scores, mask)
        if intervene is not None:
            weights = intervene(Site(SITE, scores, weights, mask, self.project, batch))
        logits = self.decode(encoded, weights[:, 0])[:, 0]
        owner = dict.fromkeys(self.sites, own_places(batch))
        return Trace(logits, {**read.weights, SITE: weights}, {**read.states, SITE: encoded.states}, owner)


def reorder_head(state: dict[str, Tensor], order: tuple[int, ...]) -> dict[str, Tensor]:
    """A head's tensors with its classes in another order."""
    rows = torch.tensor(order)
    return {name: tensor[rows] if name.startswith("decoder.") else tensor for name, tensor in state.items()}
