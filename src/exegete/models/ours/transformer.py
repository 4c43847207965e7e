"""Transformer: self-attention layers, attention pooling, linear decoder (Meister et al. 2021).

    x_t = √size · (P e_t) + position_t,  h = layers(x),  α = project(score(h)),  logits = Σ_t α_t (W h_t) + b

Sites are `encoder.0`, `encoder.1`, …, with a query per token, and `attention`, the last one, which pools and which
`encode` and `decode` are of. Words and wrappers look at words and wrappers; only words are pooled. Positions count the
tokens that are there, so padding on either side changes nothing, and a deleted word closes the gap.

Meister et al. don't say how their encoder is pooled; this is Jain & Wallace's way, as in all their other models. There
is no norm after the last layer of `norm=pre`: it would give all states nearly one length, and their measure of which
words a state is made of is the derivative of that length.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor, nn

from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.attention import SCORERS
from exegete.models.ours.classifier import SITE, PoolingClassifier, own_places
from exegete.models.ours.module import KeptSites
from exegete.models.ours.self_attention import AttentionHook, EncoderLayer, among, sinusoids
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import TransformerSettings
from exegete.tasks.batching import Batch

LAYER = "encoder."  # and its number


class StackOutput(NamedTuple):
    """What a stack of layers made of a batch."""

    states: Tensor  # [batch, token, size]: 0 on padding
    weights: dict[str, Tensor]  # by site: [batch, head, token, token]
    moved: dict[str, Tensor]  # by site: [batch, token, size], what the weights multiply


class Stack(nn.Module):
    """Self-attention layers over embedded tokens; layers of `norm=pre` with a norm after the last, if asked."""

    def __init__(self, settings: TransformerSettings, size: int, last_norm: bool = True) -> None:
        super().__init__()
        self.out, self.positions = settings.hidden, settings.positions
        self.scaled = settings.scaled
        self.enter = nn.Identity() if size == settings.hidden else nn.Linear(size, settings.hidden)
        inner = settings.inner or 4 * settings.hidden
        self.layers = nn.ModuleList(
            EncoderLayer(settings.hidden, settings.heads, inner, _projection(settings), settings.dropout, settings.norm)
            for _ in range(settings.layers)
        )
        self.dropout = nn.Dropout(settings.dropout)
        self.leave = nn.LayerNorm(settings.hidden) if settings.norm == "pre" and last_norm else nn.Identity()

    def forward(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Embeddings [batch, token, size] and which are present to states [batch, token, out], 0 on padding."""
        return self.read(embedded, present, keep=()).states

    def read(
        self,
        embedded: Tensor,
        present: Tensor,
        at: Callable[[str], AttentionHook | None] | None = None,
        keep: KeptSites = None,
    ) -> StackOutput:
        """States, with the weights of the layers to keep; `at` gives the hook of a site."""
        states, mask = self.dropout(self._placed(embedded, present)), among(present)
        weights, moved = {}, {}
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, EncoderLayer)
            name = f"{LAYER}{number}"
            given = states
            states, found = layer(states, mask, None if at is None else at(name))
            if keep is None or name in keep:
                moved[name], weights[name] = layer.moved(given) * present[..., None], found
        return StackOutput(self.leave(states) * present[..., None], weights, moved)

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides weights and nothing else: queries, keys and projection of every layer."""
        for layer in self.layers:
            assert isinstance(layer, EncoderLayer)
            for part in (layer.attention.query, layer.attention.key, layer.attention.project):
                yield from part.parameters()

    def _placed(self, embedded: Tensor, present: Tensor) -> Tensor:
        """Scaled (Vaswani et al. 2017, section 3.4) or not, with the position among the tokens that are present."""
        entered: Tensor = self.enter(embedded)
        scaled = entered * math.sqrt(self.out) if self.scaled else entered
        if not self.positions:
            return scaled
        table = sinusoids(present.shape[1], self.out, scaled.device).to(scaled.dtype)
        return scaled + table[(present.cumsum(-1) - 1).clamp(min=0)]


def _projection(settings: TransformerSettings) -> Projection:
    """The chosen projection where it is for every layer, softmax otherwise."""
    name = settings.projection if settings.every else "softmax"
    made: Projection = PROJECTIONS[name].load()(**(settings.projection_settings if settings.every else {}))
    return made


class Transformer(PoolingClassifier):
    """`encoder` is the stack of layers, `scorer` and `project` are those of the pooling attention."""

    settings: TransformerSettings
    encoder: Stack  # type: ignore[assignment]

    def _make_layers(self) -> None:
        settings = self.settings
        self.encoder = Stack(settings, self.size, last_norm=False)
        self.scorer = SCORERS[settings.attention](self.encoder.out)
        self.project: Projection = PROJECTIONS[settings.projection].load()(**settings.projection_settings)
        self.decoder = nn.Linear(self.encoder.out, self.outputs)

    @property
    def self_attention(self) -> tuple[str, ...]:
        """The site of every layer, from the words up."""
        return tuple(f"{LAYER}{number}" for number in range(self.settings.layers))

    @property
    def sites(self) -> tuple[str, ...]:
        """Every layer, then the pooling attention."""
        return *self.self_attention, SITE

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides weights and nothing else: queries, keys and projection of every layer, then the pool's."""
        yield from self.encoder.attention_parameters()
        yield from super().attention_parameters()

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """States, scores and W h_t of a batch, once; `intervene` acts in the layers."""
        return self._pooling(self._read(batch, embedded, intervene).states, batch)

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        layers = self._read(batch, embedded, intervene, keep)
        encoded = self._pooling(layers.states, batch)
        logits, weights = self._pooled(SITE, encoded, batch, intervene)
        owner = dict.fromkeys(self.sites, own_places(batch))
        return Trace(logits, {**layers.weights, SITE: weights}, {**layers.moved, SITE: encoded.states}, owner)

    def _read(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites = ()
    ) -> StackOutput:
        def at(name: str) -> AttentionHook:
            def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
                return weights if intervene is None else intervene(Site(name, scores, weights, mask, project, batch))

            return hook

        return self.encoder.read(self.embed(batch) if embedded is None else embedded, batch.present, at, keep)

    def _pooling(self, states: Tensor, batch: Batch) -> Encoded:
        return Encoded(states, self.scorer(states), batch.words, self.two_sided(states @ self.decoder.weight.T))
