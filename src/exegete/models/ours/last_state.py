"""Last state: a classifier without attention (Jain & Wallace's "last hidden"; Wiegreffe & Pinter 2019, section 3.2).

    logits = W r + b

r is what the encoder makes of a text as a whole (exegete.models.ours.encoders.summed_up). There is no site: nothing to
rewrite, no weights to read.
"""

from collections.abc import Iterator
from typing import NoReturn

from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.contract import Encoded, Intervention, Trace
from exegete.models.ours.classifier import Classifier, make_encoder
from exegete.models.ours.encoders import summed_up
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
        return summed_up(self.encoder, states, batch.present, batch.words)

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


def _refuse() -> NoReturn:
    raise UsageError("a model with attention=none has no weights to rewrite: use attention=tanh or attention=dot")
