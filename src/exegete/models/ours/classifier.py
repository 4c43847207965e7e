"""Classifier: encoder, attention pooling, linear decoder (Jain & Wallace 2019, section 2).

    h = encoder(e),  α = project(score(h)),  c = Σ_t α_t h_t,  logits = W c + b = Σ_t α_t (W h_t) + b

The last form is why `encode` is done once and `decode` many times: W h_t does not depend on α.
"""

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from exegete.base.places import places
from exegete.models.capabilities import Encoded, Layered, LayersByKind
from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.attention import SCORERS
from exegete.models.ours.encoder_layers import in_double, kinds_of_layers, read_by, weight_and_bias
from exegete.models.ours.encoders import CNN, Average, BiGRU, BiLSTM, Identity
from exegete.models.ours.module import KeptSites, Model, Projecting, draw_normal, embeddings
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import (
    MODELS,
    AverageSettings,
    BiGRUSettings,
    BiLSTMSettings,
    ClassifierSettings,
    FlatSettings,
    PairSettings,
)
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import Vocabulary

SITE = "attention"
_PAIRED: dict[str, type[BiLSTM] | type[BiGRU] | type[Average] | type[CNN]] = {
    "bilstm": BiLSTM, "bigru": BiGRU, "average": Average, "cnn": CNN,
}  # fmt: skip


class TextClassifier(Model):
    """Text in, one class out: what all classifiers of ours share."""

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> None:
        self.settings: ClassifierSettings = MODELS.make(spec)
        super().__init__(spec, vocabulary, labels, size or self.settings.size)
        self.embedding = embeddings(vocabulary, self.size)
        self.one_output = len(labels) == 2 and self.settings.outputs == "one"
        self._make_layers()
        draw_normal(self.embedding, self.settings)

    @abstractmethod
    def _make_layers(self) -> None:
        """Everything between the embeddings and the logits."""

    @property
    def outputs(self) -> int:
        """Numbers that the decoder gives: one per class, or a single one."""
        return 1 if self.one_output else len(self.labels)

    def two_sided(self, z: Tensor) -> Tensor:
        """One output z as [-z/2, z/2], whose softmax is [σ(-z), σ(z)]: so class 0 has gradients and relevance too."""
        return torch.cat([-z / 2, z / 2], -1) if self.one_output else z


class PoolingClassifier(Projecting, TextClassifier):
    """Through one attention that pools the states of words for a linear decoder."""

    def _make_layers(self) -> None:
        self.encoder = make_encoder(self.settings, self.size)
        self.scorer = SCORERS[self.settings.attention](self.encoder.out)
        self.project: Projection = PROJECTIONS[self.settings.projection].load()(**self.settings.projection_settings)
        self.decoder = nn.Linear(self.encoder.out, self.outputs)

    @property
    def sites(self) -> tuple[str, ...]:
        """The one attention."""
        return (SITE,)

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """States, scores and W h_t of a batch, once."""
        states = self.encoder(self.embed(batch) if embedded is None else embedded, batch.present)  # [batch, key, size]
        return Encoded(states, self.scorer(states), batch.words, self.two_sided(states @ self.decoder.weight.T))

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """logits = Σ_t α_t (W h_t) + b for every draw of weights."""
        assert encoded.values is not None
        return weights @ encoded.values + self.two_sided(self.decoder.bias)  # [batch, draw, class]

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides the weights and nothing else: scorer and projection."""
        yield from self.scorer.parameters()
        yield from self.project.parameters()

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:  # noqa: ARG002
        encoded = self.encode(batch, embedded=embedded)
        logits, weights = self._pooled(SITE, encoded, batch, intervene)
        return Trace(logits, {SITE: weights}, {SITE: encoded.states}, {SITE: self.owner(batch)})

    def _pooled(
        self, site: str, encoded: Encoded, batch: Batch, intervene: Intervention | None
    ) -> tuple[Tensor, Tensor]:
        """Logits [batch, class] and weights [batch, 1, 1, key] of the last attention, perhaps rewritten."""
        scores, mask = encoded.scores[:, None, None], encoded.mask[:, None, None]  # [batch, 1, 1, key]
        weights: Tensor = self.project(scores, mask)
        if intervene is not None:
            weights = intervene(Site(site, scores, weights, mask, self.project, batch))
        return self.decode(encoded, weights[:, 0])[:, 0], weights

    def owner(self, batch: Batch) -> Tensor:
        """The key that a token belongs to, -1 for what is no word: [batch, token]."""
        return own_places(batch)


class Classifier(PoolingClassifier):
    """One text in, one class out, through one attention over the states of one encoder, and nothing else."""

    @property
    def layer_kinds(self) -> tuple[str, ...]:
        """Of the encoder, then attention and decoder."""
        return *kinds_of_layers(self.encoder), "pool", "linear"

    def layered(self, batch: Batch, embedded: Tensor, layers: LayersByKind) -> Layered:
        """Encoder, attention, pool and decoder."""
        states, initial, _ = read_by(self.encoder, embedded, layers)
        weights = in_double(self.project, in_double(self.scorer, states.detach()), batch.words)
        context = layers("pool", states, weights, batch.words)  # [batch, size]
        weight, bias = weight_and_bias(self.decoder)
        return Layered(layers("linear", context, self.two_sided(weight.T).T, self.two_sided(bias)), initial)


def own_places(batch: Batch) -> Tensor:
    """Every word is its own key, -1 for what is no word: [batch, token]."""
    keys = places(batch.tokens).expand_as(batch.tokens)
    return torch.where(batch.words, keys, -1)


def make_encoder(settings: ClassifierSettings, size: int) -> BiLSTM | BiGRU | Average | CNN | Identity:
    """The encoder that the settings are of."""
    if isinstance(settings, BiLSTMSettings):
        return BiLSTM(size, settings.hidden)
    if isinstance(settings, BiGRUSettings):
        return BiGRU(size, settings.hidden)
    if isinstance(settings, AverageSettings):
        return Average(size, settings.hidden, settings.activation)
    if isinstance(settings, FlatSettings):
        return _of_documents(settings, size)
    if isinstance(settings, PairSettings):
        return _PAIRED[settings.encoder](size, settings.hidden)
    return CNN(size, settings.hidden)


def _of_documents(settings: FlatSettings, size: int) -> BiGRU | CNN | Identity:
    if settings.encoder == "rnn":
        return BiGRU(size, settings.hidden)
    return CNN(size, 2 * settings.hidden, (3, 5)) if settings.encoder == "conv" else Identity(size)
