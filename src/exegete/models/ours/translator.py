"""Translator: a source text in, a target text out, word by word, each through attention over the source.

An example has two texts, source and target, both wrapped in start and end symbols. The decoder reads the target up to
a step and predicts the next word: after the start symbol the first word, after the last word the end symbol. `trace`
does all steps of a given target at once (teacher forcing); `begin` and `advance` write a target that is not known yet.
Both compute the same: `trace` on a target is `advance` on its words, one after the other.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from exegete.base.places import places
from exegete.models.contract import Intervention, Readout, Trace, refuse_foreign
from exegete.models.ours.module import KeptSites, Model, draw_normal, embeddings
from exegete.models.ours.parts import TextPart, part_of
from exegete.models.settings import MODELS, TranslatorSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, SPECIAL, Vocabulary

if TYPE_CHECKING:
    from exegete.models.ours.next_word import NextWord

SOURCE, TARGET = 0, 1
ENCODER = "encoder."  # what names of sites begin with whose queries are tokens of the source


@dataclass(frozen=True)
class Draft:
    """Targets under way: what the decoder must remember of every source and of the words written so far."""

    batch: Batch  # with the sources; targets in it are not looked at
    step: int  # words that were written
    memory: dict[str, Tensor]  # [batch, ...] each: states of the source, of the decoder, …
    intervene: Intervention | None = None

    def rows(self, which: Tensor) -> "Draft":
        """Some of the targets, perhaps several times: what a beam keeps."""
        memory = {name: tensor[which] for name, tensor in self.memory.items()}
        return Draft(self.batch.rows(which), self.step, memory, self.intervene)


class Translator(Model):
    """What recurrent and self-attending translators share; `trace(...).logits` is [batch, step, row of vocabulary]."""

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> None:
        self.settings: TranslatorSettings = MODELS.make(spec)
        super().__init__(spec, vocabulary, labels, size or self.settings.size)
        self.embedding, self.target_embedding = (embeddings(vocabulary, self.size) for _ in ("source", "target"))
        self._make_layers()
        self.output = None if self.settings.tied else nn.Linear(self.size, len(vocabulary), bias=False)
        self.bias = nn.Parameter(torch.zeros(len(vocabulary)))
        for table in self.tables:
            draw_normal(table, self.settings)

    @abstractmethod
    def _make_layers(self) -> None:
        """Everything between the embeddings and the output layer."""

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """One for the source, one for the target."""
        return self.embedding, self.target_embedding

    def looked_up(self, batch: Batch) -> Tensor:
        """Tokens of the source from one table, those of the target from another: [batch, token, size]."""
        target = (batch.part == TARGET)[..., None]
        return torch.where(target, self.target_embedding(batch.tokens), self.embedding(batch.tokens))

    @property
    def words(self) -> tuple[str, ...]:
        """What it may write, by row: special symbols, then words."""
        return (*SPECIAL, *self.vocabulary.words)

    @property
    def readout(self) -> Readout:
        """The last attention over the source; every step is a prediction, with a query of its own."""
        return Readout(self.sites[-1:], "every", self.gated)

    @abstractmethod
    def begin(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Draft:
        """Read the sources; nothing is written yet."""

    @abstractmethod
    def advance(self, writing: Draft, tokens: Tensor) -> tuple[Tensor, Draft]:
        """Read one more target token each [batch] (the first is the start symbol): logits of the next [batch, word]."""

    def as_classes(self) -> "NextWord":
        """The model as a classifier of the word that follows a given beginning of a target."""
        from exegete.models.ours.next_word import next_word

        return next_word(self)

    def last(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: KeptSites = None,
    ) -> Trace:
        """`trace` of the last step of every target alone: logits [batch, word], and one query at the decoder's sites.

        Those of an encoder (`encoder.0`, …) keep all of their queries.
        """
        refuse_foreign(batch, self.reader)
        trace, read = self._ran(batch, embedded, intervene, keep)
        rows, step = example_numbers(batch), last_step(batch)
        attention = {
            site: weights if site.startswith(ENCODER) else weights[rows, :, step][:, :, None]
            for site, weights in trace.attention.items()
        }
        return trace._replace(logits=self._logits(read[rows, step]), attention=attention).only(keep)

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        trace, read = self._ran(batch, embedded, intervene, keep)
        return trace._replace(logits=self._logits(read))

    @abstractmethod
    def _ran(
        self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites
    ) -> tuple[Trace, Tensor]:
        """All but the logits, and what the output layer reads of every step: [batch, step, …]."""

    @abstractmethod
    def _logits(self, read: Tensor) -> Tensor:
        """[..., …] -> [..., word]."""

    def _written(self, states: Tensor) -> Tensor:
        """The output layer, in the precision of what it is given: [..., size] -> [..., word]."""
        weight = self.target_embedding.weight if self.output is None else self.output.weight
        return linear(states, weight.to(states.dtype), self.bias.to(states.dtype))


def read_by_decoder(batch: Batch) -> TextPart:
    """What the decoder reads of the targets, a token per step: the start symbol and the words, not the end symbol."""
    target = part_of(batch, TARGET)
    steps = max(1, target.present.shape[1] - 1)
    there = torch.arange(steps, device=target.present.device) < target.present.sum(-1, keepdim=True) - 1
    return TextPart(target.place[:, :steps], there, target.words[:, :steps] & there, target.owner)


def last_step(batch: Batch) -> Tensor:
    """The step that reads the last word of a target, or its start symbol where it has none: [batch]."""
    return (read_by_decoder(batch).present.sum(-1) - 1).clamp(min=0)


def example_numbers(batch: Batch) -> Tensor:
    """The number of every example: [batch]."""
    return places(batch.ids)


def gold(batch: Batch) -> Tensor:
    """What is to be predicted at every step: the words, then the end symbol; PAD beyond: [batch, step]."""
    tokens = part_of(batch, TARGET).take(batch.tokens)  # padding takes 0, which is PAD
    return tokens[:, 1:] if tokens.shape[1] > 1 else torch.full_like(tokens, PAD)
