"""Next word: a translator seen as a classifier of the word that follows a given beginning of a target.

An example has two texts, the source and the first words of a target; its class is the next word, or the end symbol. So
whatever asks a classifier about one prediction can ask a translator about one step: importances of source words, the
effect of other weights at that step (Vashishth et al. 2019, section 4). An intervention acts at every
step up to this one.
"""

from collections.abc import Iterator

from torch import Tensor, nn

from exegete.models.capabilities import Encoded, Pooling
from exegete.models.contract import Intervention, Readout, Trace
from exegete.models.ours.module import KeptSites, Model, Projecting
from exegete.models.ours.recurrent_translator import RecurrentTranslator
from exegete.models.ours.translator import Translator
from exegete.models.settings import TranslatorSettings
from exegete.tasks.batching import Batch


class NextWord(Model):
    """The translator's own layers under their own names: the same weights, nothing copied."""

    settings: TranslatorSettings
    writer: Translator

    def __init__(self, translator: Translator) -> None:
        super().__init__(translator.spec, translator.vocabulary, translator.words, translator.size)
        self.__dict__["writer"] = translator  # as a module of ours, its weights would have other names
        self._modules, self._parameters, self._buffers = (
            translator._modules, translator._parameters, translator._buffers,
        )  # fmt: skip
        self.settings = translator.settings
        self.train(translator.training)

    def train(self, mode: bool = True) -> "NextWord":
        """Both are in one mode."""
        self.writer.train(mode)
        super().train(mode)
        return self

    @property
    def sites(self) -> tuple[str, ...]:
        """The translator's."""
        return self.writer.sites

    @property
    def readout(self) -> Readout:
        """The last attention of the last step."""
        return Readout(self.sites[-1:], gated=self.gated)

    @property
    def tables(self) -> tuple[nn.Embedding, ...]:
        """The translator's."""
        return self.writer.tables

    def looked_up(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""
        return self.writer.looked_up(batch)

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        """The last step: logits [batch, class], one query at the decoder's sites, all queries at an encoder's."""
        return self.writer.last(batch, embedded=embedded, intervene=intervene, keep=keep)

    def unpooled(self) -> str:
        """Why its attention can't be rewritten after encoding."""
        return "its attention is in many layers, and none of them pools the source for the output alone"

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """The translator's."""
        return self.writer.attention_parameters()


class PooledNextWord(Projecting, NextWord):
    """That of a translator whose one attention pools the source for a step."""

    writer: RecurrentTranslator

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """The last step up to its attention."""
        return self.writer.encode(batch, embedded=embedded, intervene=intervene)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """The rest of that step: weights [batch, draw, key] -> logits [batch, draw, class]."""
        return self.writer.decode(encoded, weights)


def next_word(translator: Translator) -> NextWord:
    """A translator's next word; one whose attention pools can be decoded under other weights."""
    return PooledNextWord(translator) if isinstance(translator, Pooling) else NextWord(translator)
