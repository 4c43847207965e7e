"""Last state: a classifier without attention (Jain & Wallace's "last hidden"; Wiegreffe & Pinter 2019, section 3.2).

    logits = W r + b

r is what the encoder makes of a text as a whole (exegete.models.ours.encoders.summarise_text). There is no site:
nothing to rewrite, no weights to read.
"""

from collections.abc import Iterator

from torch import Tensor, nn

from exegete.models.contract import Intervention, Trace
from exegete.models.ours.classifier import TextClassifier, make_encoder
from exegete.models.ours.encoders import summarise_text
from exegete.models.ours.module import KeptSites
from exegete.tasks.batching import Batch


class LastState(TextClassifier):
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
        return summarise_text(self.encoder, states, batch.present, batch.words)

    def _trace(self, batch: Batch, embedded: Tensor | None, intervene: Intervention | None, keep: KeptSites) -> Trace:
        del intervene, keep  # there are no weights to rewrite, and none to keep
        return Trace(self.two_sided(self.decoder(self.summed_up(batch, embedded))), {}, {}, {})
