"""Next word: a translator seen as a classifier of the word that follows a given beginning of a target.

An example has two texts, the source and the first words of a target; its class is the next word, or the end symbol. So
whatever asks a classifier about one prediction can ask a translator about one step: importances of source words, the
effect of other weights at that step (Vashishth et al. 2019, section 4; PROTOCOLS 10). An intervention acts at every
step up to this one.
"""

from collections.abc import Iterator

from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.contract import Encoded, Intervention, Trace
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.module import Model
from exegete.models.ours.translator import Translator
from exegete.models.settings import TranslatorSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import SPECIAL


class NextWord(Classifier):
    """The translator's own layers under their own names: the same weights, the same fingerprint, nothing copied."""

    settings: TranslatorSettings  # type: ignore[assignment]
    translator: Translator

    def __init__(self, translator: Translator) -> None:
        labels = (*SPECIAL, *translator.vocabulary.words)
        Model.__init__(self, translator.spec, translator.vocabulary, labels, translator.size)
        self.__dict__["translator"] = translator  # as a module of ours, its weights would have other names
        self._modules, self._parameters, self._buffers = (
            translator._modules, translator._parameters, translator._buffers,
        )  # fmt: skip
        self.settings, self.one_output = translator.settings, False
        self.train(translator.training)

    def train(self, mode: bool = True) -> "NextWord":
        """Both are in one mode."""
        self.translator.train(mode)
        super().train(mode)
        return self

    @property
    def sites(self) -> tuple[str, ...]:
        """The translator's."""
        return self.translator.sites

    def embed(self, batch: Batch) -> Tensor:
        """[batch, token, size], before positions are added."""
        return self.translator.embed(batch)

    def trace(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Trace:
        """The last step: logits [batch, class], one query at the decoder's sites, all queries at an encoder's."""
        return self.translator.last(batch, embedded=embedded, intervene=intervene)

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """The translator's."""
        return self.translator.attention_parameters()

    def unpooled(self) -> str | None:
        """Why `encode` and `decode` are not for it, as a sentence; None for a translator whose attention pools."""
        return self.translator.unpooled()

    def encode(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Encoded:
        """The last step up to its attention."""
        self._must_pool()
        return self.translator.encode(batch, embedded=embedded, intervene=intervene)

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """The rest of that step: weights [batch, draw, key] -> logits [batch, draw, class]."""
        self._must_pool()
        return self.translator.decode(encoded, weights)

    def _must_pool(self) -> None:
        if (reason := self.unpooled()) is not None:
            raise UsageError(f"the weights of this translator can't be rewritten after encoding: {reason}")
