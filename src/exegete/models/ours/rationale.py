"""Rationale model: a classifier that reads only the words it has selected (Lei et al. 2016; Bastings et al. 2019).

    a, b = selector(e),  z_t ~ HardKuma(a_t, b_t),  h = encoder(z ⊙ e),  α = project(score(h)) over {t : z_t > 0}

Words with z_t = 0 are invisible to encoder and attention, so the selection is faithful by design: nothing else went
into the decision. That says nothing of how the words were chosen. The selector reads the whole text, and may tell the
classifier the class by *which* words it picks (Jacovi & Goldberg 2021, the trojan), or by where it leaves gaps.
"""

import math

import torch
from torch import Tensor, nn

from exegete.models.capabilities import Encoded
from exegete.models.ours.classifier import PoolingClassifier
from exegete.models.ours.encoders import BiLSTM
from exegete.models.ours.hardkuma import HardKuma, shape_for
from exegete.models.settings import RationaleSettings
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import Vocabulary

START = 0.1  # the first a of every gate: a density with its mass at the ends, near 0 or 1
LEAST = 0.01  # a and b don't come nearer to 0, where probabilities have no gradient left
EDGE = 1e-6  # noise stays so far inside (0, 1)


class RationaleClassifier(PoolingClassifier):
    """Select, then classify what was selected; with nothing selected the decoder's bias decides."""

    settings: RationaleSettings
    multiplier: Tensor  # λ

    def __init__(self, spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> None:
        super().__init__(spec, vocabulary, labels, size)
        self.selector = Selector(self.size, self.settings.hidden, self.settings.share)
        self.register_buffer("multiplier", torch.tensor(0.0))
        self._selected: Tensor | None = None  # [batch]: the expected share of the last texts that training saw

    def gates(self, batch: Batch, embedded: Tensor) -> Tensor:
        """z [batch, token]: drawn in training, the most probable case otherwise; 0 on padding, 1 on wrappers."""
        distribution = self.selector(embedded, batch.present)
        if self.training:
            self._selected = (distribution.selected * batch.words).sum(-1) / batch.lengths.clamp(min=1)
            z = distribution.sample(torch.rand_like(distribution.a).clamp(EDGE, 1 - EDGE))
        else:
            z = distribution.choice
        return torch.where(batch.words, z, batch.present.to(z.dtype))

    @torch.no_grad()
    def selected(self, batch: Batch) -> Tensor:
        """Which words the classifier may read, [batch, token]."""
        return (self.gates(batch, self.embed(batch)) > 0) & batch.words

    def encode(self, batch: Batch, *, embedded: Tensor | None = None) -> Encoded:
        """Select, then read."""
        embedded = self.embed(batch) if embedded is None else embedded
        return self.read(batch, embedded, self.gates(batch, embedded))

    def read(self, batch: Batch, embedded: Tensor, gates: Tensor) -> Encoded:
        """States, scores and W h_t of z ⊙ e; attention may look where z > 0."""
        encoded = super().encode(batch, embedded=gates[..., None] * embedded)
        return encoded._replace(mask=batch.words & (gates > 0))

    def penalty(self) -> Tensor | float:
        """λ c + ½ ρ c², c = E[share] − target: the augmented Lagrangian of "select this share" (Hestenes 1969).

        λ rises by rate · c with every batch: as long as too much is selected selecting gets dearer, otherwise cheaper.
        Bastings et al. have no square, and a λ that changes exponentially and so stays positive: it can only make
        selecting dear, and with the few steps of a small data set it ended here in selecting nothing.
        """
        if self._selected is None:
            return 0.0
        excess = self._selected.mean() - self.settings.share
        self._selected = None
        penalty = (self.multiplier + 0.5 * self.settings.strength * excess) * excess
        self.multiplier += self.settings.rate * excess.detach()
        return penalty


class Selector(nn.Module):
    """A BiLSTM of its own and two numbers per word, the shapes of its gate."""

    def __init__(self, size: int, hidden: int, share: float) -> None:
        super().__init__()
        self.encoder = BiLSTM(size, hidden)
        self.linear = nn.Linear(self.encoder.out, 2)
        first = (START, shape_for(share, START))  # so that training begins with the share that is asked for
        with torch.no_grad():
            self.linear.bias.copy_(torch.tensor([_before_softplus(max(shape - LEAST, LEAST)) for shape in first]))

    def forward(self, embedded: Tensor, present: Tensor) -> HardKuma:
        """[batch, token, size] to gates [batch, token]."""
        shapes = torch.nn.functional.softplus(self.linear(self.encoder(embedded, present))) + LEAST
        return HardKuma(shapes[..., 0], shapes[..., 1])


def _before_softplus(value: float) -> float:
    """x with log(1 + exp x) = value."""
    return math.log(math.expm1(value))
