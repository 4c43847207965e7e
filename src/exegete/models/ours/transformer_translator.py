"""Transformer translator: layers of self-attention on both sides, and cross attention between (Vaswani et al. 2017).

    encoder.i   source tokens look at source tokens
    decoder.i   every step looks at itself and at earlier steps
    cross.i     every step looks at source tokens

A step is a target token that is read: the start symbol, then the words. Start and end symbols of the source are keys
and queries like words, as in the paper, also of cross attention: a head that looks for nothing may look there. Only
words have an owner. All embeddings are multiplied by √size and get sinusoids added; each side has its own table, and
the output layer's weights are those of the target's where they are tied (section 3.4).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from exegete.models.contract import Intervention, Site, Trace
from exegete.models.ours.module import KeptSites
from exegete.models.ours.parts import TextPart, part_of
from exegete.models.ours.self_attention import (
    AttentionHook,
    DecoderLayer,
    EncoderLayer,
    KeyValue,
    MultiHead,
    Past,
    among,
    not_later,
    sinusoids,
)
from exegete.models.ours.transformer import Stack, StackOutput
from exegete.models.ours.translator import (
    ENCODER,
    SOURCE,
    Draft,
    Translator,
    read_by_decoder,
)
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import TransformerSettings, TranslatorSettings
from exegete.tasks.batching import Batch

DECODER, CROSS = "decoder.", "cross."  # and the layer's number

HookAt = Callable[[str], AttentionHook]  # the hook of a site


class Decoded(NamedTuple):
    """What the decoder's layers made of some steps."""

    states: Tensor  # [batch, step, size]: what the output layer reads
    weights: dict[str, Tensor]  # by site: [batch, head, step, key]
    inputs: list[Tensor]  # [batch, step, size]: what each layer was given
    pasts: list[Past]  # by layer: to go on from


class TransformerDecoder(nn.Module):
    """Layers that look at earlier steps and at the source."""

    def __init__(self, settings: TranslatorSettings) -> None:
        super().__init__()
        size, inner = settings.hidden, settings.inner or 4 * settings.hidden
        self.layers = nn.ModuleList(
            DecoderLayer(size, settings.heads, inner, _projections(settings), settings.dropout, settings.norm)
            for _ in range(settings.layers)
        )
        self.dropout = nn.Dropout(settings.dropout)
        self.leave = nn.LayerNorm(size) if settings.norm == "pre" else nn.Identity()

    @property
    def each(self) -> list[DecoderLayer]:
        """The layers, from the words up."""
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]

    def begin(self, source: Tensor) -> list[Past]:
        """Before the first step: what every layer looks up in the source's states [batch, key, size]."""
        return [layer.begin(source) for layer in self.each]

    def forward(self, states: Tensor, pasts: Sequence[Past], masks: tuple[Tensor, Tensor], at: HookAt) -> Decoded:
        """Steps [batch, step, size] with their positions, after those of the past; masks as a layer takes them."""
        states, weights, inputs, after = self.dropout(states), {}, [], []
        for number, (layer, past) in enumerate(zip(self.each, pasts, strict=True)):
            inputs.append(states)
            own, cross = f"{DECODER}{number}", f"{CROSS}{number}"
            states, weights[own], weights[cross], past = layer(states, past, masks, (at(own), at(cross)))
            after.append(past)
        return Decoded(self.leave(states), weights, inputs, after)


class TransformerTranslator(Translator):
    """Sites are `encoder.0`, `encoder.1`, …, then `decoder.0`, `cross.0`, `decoder.1`, …: the order of computation."""

    def _make_layers(self) -> None:
        self.encoder = Stack(_of_encoder(self.settings), self.size)
        self.decoder = TransformerDecoder(self.settings)

    @property
    def sites(self) -> tuple[str, ...]:
        """Every attention, in the order of computation."""
        layers = range(self.settings.layers)
        encoder = [f"{ENCODER}{number}" for number in layers]
        return (*encoder, *(f"{kind}{number}" for number in layers for kind in (DECODER, CROSS)))

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """What decides weights and nothing else: queries, keys and projection of every attention.

        A layer norm before cross attention is of its queries alone.
        """
        for layer in self.encoder.layers:
            assert isinstance(layer, EncoderLayer)
            yield from _of_weights(layer.attention)
        for decoding in self.decoder.each:
            yield from _of_weights(decoding.own)
            if decoding.around_cross.first:
                yield from decoding.around_cross.norm.parameters()
            yield from _of_weights(decoding.cross)

    def _ran(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites
    ) -> tuple[Trace, Tensor]:
        embedded = self.embed(batch) if embedded is None else embedded
        source, steps, at = part_of(batch, SOURCE), read_by_decoder(batch), _at(batch, intervene)
        read = self._read(source, embedded, at, keep)
        own = among(steps.present) & not_later(steps.present.shape[1], steps.present.device)
        cross = (steps.present[:, :, None] & source.present[:, None])[:, None]
        decoded = self.decoder(self._placed(steps.take(embedded)), self.decoder.begin(read.states), (own, cross), at)
        weights, moved = (
            read.weights | decoded.weights,
            read.moved | self._moved(decoded, read.states, (source, steps), keep),
        )
        owner = {site: (steps if site.startswith(DECODER) else source).owner for site in self.sites}
        return Trace(embedded.new_zeros(0), weights, moved, owner), decoded.states

    def _read(self, source: TextPart, embedded: Tensor, at: HookAt, keep: KeptSites = ()) -> StackOutput:
        return self.encoder.read(source.take(embedded), source.present, at, keep)

    def _placed(self, embedded: Tensor, first: int = 0) -> Tensor:
        """Scaled, with positions from the first of these steps on: [batch, step, size]."""
        steps = embedded.shape[1]
        return embedded * math.sqrt(self.size) + sinusoids(first + steps, self.size, embedded.device)[first:].to(
            embedded.dtype
        )

    def _moved(
        self, decoded: Decoded, states: Tensor, parts: tuple[TextPart, TextPart], keep: KeptSites
    ) -> dict[str, Tensor]:
        """What the weights of the decoder's sites multiply: [batch, key, size] each, 0 on padding."""
        moved: dict[str, Tensor] = {}
        source, steps = parts
        if keep is not None and not any(site.startswith((DECODER, CROSS)) for site in keep):
            return moved
        for number, (layer, given) in enumerate(zip(self.decoder.each, decoded.inputs, strict=True)):
            moved[f"{DECODER}{number}"] = layer.own.moved(layer.around_own.enter(given)) * steps.present[..., None]
            moved[f"{CROSS}{number}"] = layer.cross.moved(states) * source.present[..., None]
        return moved

    def _logits(self, read: Tensor) -> Tensor:
        """[..., size] -> [..., word]."""
        return self._written(read)

    def begin(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Draft:
        """Read the sources; nothing is written yet."""
        source = part_of(batch, SOURCE)
        read = self._read(source, self.embed(batch) if embedded is None else embedded, _at(batch, intervene))
        memory = _packed(self.decoder.begin(read.states))
        return Draft(batch, 0, {"present": source.present, **memory}, intervene)

    def advance(self, writing: Draft, tokens: Tensor) -> tuple[Tensor, Draft]:
        """One step of every target, as `trace` does them; keys and values of all earlier ones are remembered."""
        memory, step = writing.memory, writing.step
        states = self._placed(self.target_embedding(tokens)[:, None], step)
        own = torch.ones(len(tokens), 1, 1, step + 1, dtype=torch.bool, device=tokens.device)
        masks, at = (own, memory["present"][:, None, None]), _at(writing.batch, writing.intervene, step)
        decoded = self.decoder(states, _unpacked(memory, self.settings.layers), masks, at)
        memory = {"present": memory["present"], **_packed(decoded.pasts)}
        return self._logits(decoded.states)[:, 0], Draft(writing.batch, step + 1, memory, writing.intervene)


def _of_encoder(settings: TranslatorSettings) -> TransformerSettings:
    """The encoder is that of the classifier, with the translator's settings."""
    shared = {"projection", "lam", "alpha", "learned", "hidden", "layers", "heads", "inner", "dropout", "norm"}
    return TransformerSettings(**settings.model_dump(include=shared))


def _projections(settings: TranslatorSettings) -> tuple[Projection, Projection]:
    """One over the target, one over the source: what is learnt in one is not shared."""
    make = PROJECTIONS[settings.projection].load()
    return make(**settings.projection_settings), make(**settings.projection_settings)


def _of_weights(attention: MultiHead) -> Iterator[nn.Parameter]:
    for part in (attention.query, attention.key, attention.project):
        yield from part.parameters()


def _at(batch: Batch, intervene: Intervention | None, first: int = 0) -> HookAt:
    """A hook per site that shows it to the intervention; `first` is the first of the steps that are done."""

    def at(name: str) -> AttentionHook:
        def hook(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
            if intervene is None:
                return weights
            return intervene(Site(name, scores, weights, mask, project, batch, first))

        return hook

    return at


def _packed(pasts: Sequence[Past]) -> dict[str, Tensor]:
    """Pasts as named tensors, [batch, ...] each; before the first step there is nothing of the target's own."""
    memory = {}
    for number, past in enumerate(pasts):
        for side, pair in (("own", past.own), ("source", past.source)):
            for name, tensor in (pair._asdict() if pair is not None else {}).items():
                memory[f"{side}.{number}.{name}"] = tensor
    return memory


def _unpacked(memory: dict[str, Tensor], layers: int) -> list[Past]:
    """The pasts of all layers again."""

    def pair(side: str, number: int) -> KeyValue:
        return KeyValue(memory[f"{side}.{number}.keys"], memory[f"{side}.{number}.values"])

    begun = "own.0.keys" in memory
    return [Past(pair("own", number) if begun else None, pair("source", number)) for number in range(layers)]
