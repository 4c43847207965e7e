"""GlobEnc: the length of what a word gives to the states of a layer, followed down (Modarressi et al. 2022, section 3).

    z_i←j = LN₁(Σ_h α_ij W_O v_j + [i = j] x_i),   C_ij = ‖LN₂(z_i←j)‖₂,  rows to shares of 1

LN₁ and LN₂ are the layer's norms without what they add, with the deviation of the whole state as a constant. The
feed-forward layer is passed by its residual: what it adds belongs to no word. The bias of values belongs to the words.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from exegete.importance.mixing import Mixing, Way
from exegete.models.separable import Copies


def given_norms(copies: Copies) -> Tensor:
    """‖what a word gives‖₂, [word, piece]."""
    length: Tensor = (copies.whole.double() - copies.without.double()).norm(dim=-1)
    return length


@dataclass(frozen=True)
class GlobEnc(Mixing):
    """Lengths of what words give to layers, followed from what is read down to the words."""

    label: ClassVar[str] = "GlobEnc"
    way: ClassVar[Way] = Way("globenc", "layer", given_norms)
