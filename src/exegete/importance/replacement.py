"""Replacement: what a prediction loses with one word made unknown (Hooker et al. 2019: removal off the data)."""

from dataclasses import dataclass
from typing import ClassVar

from exegete.importance.erasure import Removal
from exegete.importance.omission import Omission


@dataclass(frozen=True)
class Replacement(Omission):
    """f_c(x) − f_c(x with the unknown word at t).

    The text keeps its length, and its embeddings are ones that the model knows. A word that is unknown already scores
    exactly 0. The settings are those of the family, see exegete.importance.omission.
    """

    family: ClassVar[str] = "erasure"

    by: ClassVar[Removal] = "unknown"
