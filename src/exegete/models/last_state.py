"""Last state: a classifier without attention (Jain & Wallace's "last hidden"; Wiegreffe & Pinter 2019, section 3.2).

    logits = W r + b

r is what the encoder makes of a text as a whole: for a BiLSTM or BiGRU the forward state at the last token beside the
backward state at the first, where each direction has read everything; for `average` and without an encoder the mean
over words; for `cnn` the maximum over words (PROTOCOLS 1.1). There is no site: nothing to rewrite, no weights to read.
"""

from collections.abc import Iterator
from typing import NoReturn

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.classifier import Classifier, make_encoder
from exegete.models.contract import Encoded, Intervention, Trace
from exegete.models.encoders import CNN, Average, Identity
from exegete.tasks.batching import Batch


class LastState(Classifier):
    """One text in, one class out, and no attention between."""

    def _make_layers(self) -> None:
        self.encoder = make_encoder(self.settings, self.size)
        self.decoder = nn.Linear(self.encoder.out, self.outputs)

    @property
    def sites(self) -> tuple[str, ...]:
        """None."""
        return ()

    def attention_parameters(self) -> Iterator[nn.Parameter]:
        """None."""
        yield from ()

    def summed_up(self, batch: Batch, embedded: Tensor | None = None) -> Tensor:
        """r, what the decoder reads of every text; a text without words is 0."""  # [batch, size]
        states: Tensor = self.encoder(self.embed(batch) if embedded is None else embedded, batch.present)
        if isinstance(self.encoder, Average | Identity):
            return (states * batch.words[..., None]).sum(1) / batch.lengths.clamp(min=1)[:, None]
        if isinstance(self.encoder, CNN):  # states are never below 0, so zeros in place of other tokens change nothing
            return (states * batch.words[..., None]).amax(1)
        return _ends(states, batch.present)

    def trace(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Trace:
        """Predict; an intervention finds no weights to rewrite."""
        del intervene
        return Trace(self.two_sided(self.decoder(self.summed_up(batch, embedded))), {}, {}, {})

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """Refused: nothing is pooled."""
        del batch, embedded
        _refuse()

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """Refused: nothing is pooled."""
        del encoded, weights
        _refuse()


def _ends(states: Tensor, present: Tensor) -> Tensor:
    """The forward half at the last token that is present, the backward half at the first."""  # [batch, size]
    place = torch.arange(present.shape[1])
    last = (present * place).amax(-1)
    first = present.byte().argmax(-1)
    forward, backward = states.chunk(2, -1)
    rows = torch.arange(len(states))
    return torch.cat([forward[rows, last], backward[rows, first]], -1)


def _refuse() -> NoReturn:
    raise UsageError("a model with attention=none has no weights to rewrite: use attention=tanh or attention=dot")
