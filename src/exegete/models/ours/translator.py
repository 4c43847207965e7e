"""Translator: a source text in, a target text out, word by word, each through attention over the source.

An example has two texts, source and target, both wrapped in start and end symbols. The decoder reads the target up to
a step and predicts the next word: after the start symbol the first word, after the last word the end symbol. `trace`
does all steps of a given target at once (teacher forcing); `begin` and `advance` write a target that is not known yet.
Both compute the same: `trace` on a target is `advance` on its words, one after the other.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.contract import Encoded, Intervention, Trace
from exegete.models.ours.module import Model
from exegete.models.ours.parts import Part, part_of
from exegete.models.settings import TranslatorSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD

SOURCE, TARGET = 0, 1
ENCODER = "encoder."  # what names of sites begin with whose queries are tokens of the source


@dataclass(frozen=True)
class Writing:
    """Targets under way: what the decoder must remember of every source and of the words written so far."""

    batch: Batch  # with the sources; targets in it are not looked at
    step: int  # words that were written
    memory: dict[str, Tensor]  # [batch, ...] each: states of the source, of the decoder, …
    intervene: Intervention | None = None

    def rows(self, which: Tensor) -> "Writing":
        """Some of the targets, perhaps several times: what a beam keeps."""
        memory = {name: tensor[which] for name, tensor in self.memory.items()}
        return Writing(self.batch.rows(which), self.step, memory, self.intervene)


class Translator(Model):
    """What recurrent and self-attending translators share; `trace(...).logits` is [batch, step, row of vocabulary]."""

    settings: TranslatorSettings

    @abstractmethod
    def begin(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Writing:
        """Read the sources; nothing is written yet."""

    @abstractmethod
    def advance(self, writing: Writing, tokens: Tensor) -> tuple[Tensor, Writing]:
        """Read one more target token each [batch] (the first is the start symbol): logits of the next [batch, word]."""

    def last(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Trace:
        """`trace` of the last step of every target alone: logits [batch, word], and one query at the decoder's sites.

        Those of an encoder (`encoder.0`, …) keep all of their queries.
        """
        trace, rows, step = self.trace(batch, embedded=embedded, intervene=intervene), _rows(batch), last_step(batch)
        attention = {
            site: weights if site.startswith(ENCODER) else weights[rows, :, step][:, :, None]
            for site, weights in trace.attention.items()
        }
        return trace._replace(logits=trace.logits[rows, step], attention=attention)

    def unpooled(self) -> str | None:
        """Why `encode` and `decode` are not for it, as a sentence; None for a translator whose attention pools."""
        return "its attention is in many layers, and none of them pools the source for the output alone"

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """The last step of every target, up to its attention: states of the source, scores, and the decoder's own."""
        del batch, embedded, intervene
        self._refuse()

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """The rest of that step: weights [batch, draw, key] -> logits [batch, draw, word]."""
        del encoded, weights
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(f"one step can't be decoded under other weights: {self.unpooled()}")


def read_by_decoder(batch: Batch) -> Part:
    """What the decoder reads of the targets, a token per step: the start symbol and the words, not the end symbol."""
    target = part_of(batch, TARGET)
    steps = max(1, target.present.shape[1] - 1)
    there = torch.arange(steps) < target.present.sum(-1, keepdim=True) - 1
    return Part(target.place[:, :steps], there, target.words[:, :steps] & there, target.owner)


def last_step(batch: Batch) -> Tensor:
    """The step that reads the last word of a target, or its start symbol where it has none: [batch]."""
    return (read_by_decoder(batch).present.sum(-1) - 1).clamp(min=0)


def _rows(batch: Batch) -> Tensor:
    return torch.arange(len(batch.ids))


def gold(batch: Batch) -> Tensor:
    """What is to be predicted at every step: the words, then the end symbol; PAD beyond: [batch, step]."""
    tokens = part_of(batch, TARGET).take(batch.tokens)  # padding takes 0, which is PAD
    return tokens[:, 1:] if tokens.shape[1] > 1 else torch.full_like(tokens, PAD)
