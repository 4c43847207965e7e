"""Value zeroing: how far a state moves when a word has no value to give (Mohebbi et al. 2023, section 3).

    C_ij = 1 − cos(y_i, y_i without the value of j),  rows to shares of 1

y_i is a state after the whole layer: output map, residual, norms and feed-forward layer follow. In the copy without j
all heads have the value vector of j set to 0 and the weights that they have; what came before the layer is as it was.
Layers are followed down as in rollout, without a residual of their own: it is in y.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cosine_similarity

from exegete.importance.mixing import Mixing, Way
from exegete.models.separable import Copies


def state_shift(copies: Copies) -> Tensor:
    """1 − cos of states with and without, [word, piece]; in double precision, since most are near 0."""
    distance = 1 - cosine_similarity(copies.whole.double(), copies.without.double(), dim=-1)
    return distance.clamp(min=0)


@dataclass(frozen=True)
class ValueZeroing(Mixing):
    """Cosine distances by zeroed values, followed through all layers from what is read down to the words."""

    way: ClassVar[Way] = Way("value_zeroing", "values", state_shift)
