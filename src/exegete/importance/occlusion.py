"""Occlusion: what a prediction loses with one word's embedding zeroed (Bastings & Filippova 2020, equation 5)."""

from dataclasses import dataclass
from typing import ClassVar

from exegete.importance.erasure import Removal
from exegete.importance.omission import Omission


@dataclass(frozen=True)
class Occlusion(Omission):
    """f_c(x) − f_c(x with x_t = 0), after the grey patches of Zeiler & Fergus (2014, section 4.2).

    The text keeps its length, and attention may still look at the gap. The settings are those of the family, see
    exegete.importance.omission.
    """

    family: ClassVar[str] = "erasure"

    by: ClassVar[Removal] = "zero"
