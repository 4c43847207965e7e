"""Hierarchical attention network: words make sentences, sentences make a document (Yang et al. 2016).

    h_st = encoder(e_s1 … e_sT),  β_s = project(word_score(h_s)),  v_s = Σ_t β_st h_st        in every sentence s
    g = sentence_encoder(v_1 … v_S),  α = project(score(g)),  logits = W Σ_s α_s g_s + b

There are two sites: `word`, with a query per sentence, and `sentence`, the last one, which `encode` and `decode` are
of. Sentences are those of the batch. A sentence whose words were all erased is simply absent: the sentences that remain
move together, as its words do when one is deleted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from exegete.base.places import places
from exegete.models.capabilities import Encoded
from exegete.models.contract import Intervention, Readout, Site, Trace
from exegete.models.ours.attention import SCORERS
from exegete.models.ours.classifier import PoolingClassifier, make_encoder, own_places
from exegete.models.ours.encoders import CNN, BiGRU
from exegete.models.ours.module import KeptSites
from exegete.models.projections import PROJECTIONS, Projection
from exegete.models.settings import HierarchicalSettings
from exegete.tasks.batching import Batch

WORD, SENTENCE = "word", "sentence"


class Sentences(NamedTuple):
    """The sentences of a batch, absent ones left out."""

    owner: Tensor  # [batch, token]: the sentence of a word, from 0 and without gaps; -1 elsewhere
    real: Tensor  # [batch, sentence]: True on those that a text has


class Level(NamedTuple):
    """What the lower level made of a batch."""

    sentences: Sentences
    states: Tensor  # [batch, token, size]
    weights: Tensor  # [batch, 1, sentence, token]
    vectors: Tensor  # [batch, sentence, size]


class Hierarchical(PoolingClassifier):
    """`encoder` and `word_scorer` read words, `sentence_encoder` and `scorer` sentences."""

    settings: HierarchicalSettings

    def _make_layers(self) -> None:
        super()._make_layers()  # states of sentences have the size of those of words: scorer and decoder fit
        self.word_scorer = SCORERS[self.settings.attention](self.encoder.out)
        self.word_project: Projection = PROJECTIONS[self.settings.projection].load()(
            **self.settings.projection_settings
        )
        self.sentence_encoder = make_encoder(self.settings, self.encoder.out)

    @property
    def sites(self) -> tuple[str, ...]:
        """Words in their sentence, then sentences."""
        return WORD, SENTENCE

    @property
    def readout(self) -> Readout:
        """A word's share of the document is that of its sentence times its own in it."""
        return Readout((WORD, SENTENCE), gated=self.gated)

    def attention_parameters(self) -> Iterator[torch.nn.Parameter]:
        """Scorer and projection of both levels."""
        yield from self.word_scorer.parameters()
        yield from self.word_project.parameters()
        yield from super().attention_parameters()

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """States, scores and W g_s of the sentences, once; `intervene` acts at the lower site."""
        return self._of_sentences(self._of_words(batch, embedded, intervene))

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        del keep
        lower = self._of_words(batch, embedded, intervene)
        encoded = self._of_sentences(lower)
        logits, weights = self._pooled(SENTENCE, encoded, batch, intervene)
        owner = {WORD: own_places(batch), SENTENCE: lower.sentences.owner}
        states = {WORD: lower.states, SENTENCE: encoded.states}
        return Trace(logits, {WORD: lower.weights, SENTENCE: weights}, states, owner)

    def _of_words(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None) -> Level:
        sentences = sentences_of(batch)
        states = self._word_states(self.embed(batch) if embedded is None else embedded, sentences)
        mask = (sentences.owner[:, None] == places(sentences.real)[:, None])[:, None]
        scores = self.word_scorer(states)[:, None, None].expand_as(mask)  # [batch, 1, sentence, token]
        weights = self.word_project(scores, mask)
        if intervene is not None:
            weights = intervene(Site(WORD, scores, weights, mask, self.word_project, batch))
        return Level(sentences, states, weights, weights[:, 0] @ states)

    def _word_states(self, embedded: Tensor, sentences: Sentences) -> Tensor:
        """Every sentence encoded on its own; 0 where no word is."""
        if isinstance(self.encoder, BiGRU):
            return run_packed(self.encoder, embedded, sentences)
        if isinstance(self.encoder, CNN):
            return run_spaced(self.encoder, embedded, sentences)
        states: Tensor = self.encoder(embedded, sentences.owner >= 0)
        return states

    def _of_sentences(self, lower: Level) -> Encoded:
        real = lower.sentences.real
        states = self.sentence_encoder(lower.vectors, real)  # [batch, sentence, size]
        return Encoded(states, self.scorer(states), real, self.two_sided(states @ self.decoder.weight.T))


def sentences_of(batch: Batch) -> Sentences:
    """The sentences that have words, numbered anew; a batch without any has one place for them."""
    number = torch.where(batch.words, batch.sentence, -1)
    size = (len(number), 1 + max(1, int(number.max()) + 1))
    there = torch.zeros(size, dtype=torch.bool, device=number.device).scatter_(1, number + 1, True)
    rank = there[:, 1:].cumsum(-1) - 1  # [batch, number]
    owner = torch.where(batch.words, rank.gather(1, number.clamp(min=0)), -1)
    count = there[:, 1:].sum(-1)
    return Sentences(owner, torch.arange(max(1, int(count.max())), device=count.device) < count[:, None])


def run_packed(encoder: BiGRU, embedded: Tensor, sentences: Sentences) -> Tensor:
    """A recurrent encoder over all sentences of a batch side by side, without a step on padding.

    The words are put in the order in which the GRU reads them, longest sentence first: word 0 of all sentences, then
    word 1 of all that have one, and so on.
    """
    owner = sentences.owner.clone()
    owner[~sentences.real.any(-1), 0] = 0  # a text without words: one padding token, never attended to
    rows, tokens = (owner >= 0).nonzero(as_tuple=True)  # [word], in the order of texts and words
    sentence, length = (rows * owner.shape[1] + owner[rows, tokens]).unique_consecutive(
        return_inverse=True, return_counts=True
    )[1:]  # [word], [sentence]
    place = places(rows) - (length.cumsum(0) - length)[sentence]
    turn = length.argsort(descending=True, stable=True).argsort()  # [sentence]
    order = (place * len(length) + turn[sentence]).argsort()
    rows, tokens = rows[order], tokens[order]
    read: Tensor = encoder.gru(PackedSequence(embedded[rows, tokens], place.bincount().cpu()))[0].data  # [word, size]
    states = read.new_zeros(*embedded.shape[:2], encoder.out).index_put((rows, tokens), read)
    return states * (sentences.owner >= 0)[..., None]


def run_spaced(encoder: CNN, embedded: Tensor, sentences: Sentences) -> Tensor:
    """Convolutions over a batch of texts with zeros between their sentences, as beyond the ends of a text."""
    words, gap = sentences.owner >= 0, max(encoder.widths) // 2
    place = torch.where(words, words.cumsum(-1) - 1 + gap * sentences.owner, 0)  # [batch, token]
    width = embedded.shape[1] + gap * (sentences.real.shape[1] - 1)
    rows, tokens = words.nonzero(as_tuple=True)
    there = (rows, place[rows, tokens])
    apart = embedded.new_zeros(len(embedded), width, embedded.shape[2]).index_put(there, embedded[rows, tokens])
    present = apart.new_zeros(len(embedded), width, dtype=torch.bool).index_put(there, words[rows, tokens])
    states: Tensor = encoder(apart, present)
    return states.gather(1, place[..., None].expand(-1, -1, encoder.out)) * words[..., None]
