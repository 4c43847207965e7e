"""GlobEnc: the length of what a word gives to the states of a layer, followed down (Modarressi et al. 2022, section 3).

    z_i←j = LN₁(Σ_h α_ij W_O v_j + [i = j] x_i),   C_ij = ‖LN₂(z_i←j)‖₂,  rows to shares of 1

LN₁ and LN₂ are the layer's norms without what they add, with the deviation of the whole state as a constant. The
feed-forward layer is passed by its residual: what it adds belongs to no word. The bias of values belongs to the words.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from exegete.importance.contract import Scores, Target
from exegete.importance.mixing import Way, rolled, unseparated
from exegete.models.contract import Predictor
from exegete.models.separable import Copies
from exegete.tasks.batching import Batch


def given(copies: Copies) -> Tensor:
    """‖what a word gives‖₂, [word, piece]."""
    length: Tensor = (copies.whole.double() - copies.without.double()).norm(dim=-1)
    return length


WAY = Way("globenc", "layer", given)


@dataclass(frozen=True)
class GlobEnc:
    """Lengths of what words give to layers, followed from what is read down to the words."""

    family: ClassVar[str] = "attention"
    label: ClassVar[str] = "GlobEnc"

    def refuses(self, model: Predictor) -> str | None:
        """Only where a layer is a sum over words, its feed-forward layer aside."""
        return unseparated(WAY, model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """As many passes as a text has words; one pass serves all layers."""
        return rolled(WAY, model, batch, target)
