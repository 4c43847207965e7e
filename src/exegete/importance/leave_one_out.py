"""Leave-one-out: what a prediction loses with one word deleted (Jain & Wallace 2019, section 4.1)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from exegete.importance.erasure import Removal
from exegete.importance.omission import Omission


@dataclass(frozen=True)
class LeaveOneOut(Omission):
    """Delete every word in turn, run the model on the shorter text, and compare the predictions.

    A text whose only word is deleted leaves the decoder's bias. On a BiLSTM states are reused
    (exegete.models.ours.deletion). The settings are those of the family, see exegete.importance.omission.
    """

    family: ClassVar[str] = "erasure"
    label: ClassVar[str] = "leave-one-out"
    # What people call it by what it compares: a size without a sign is another importance than a signed loss.
    kinds: ClassVar[dict[str, str]] = {"tvd": "TVD", "logit": "signed", "probability": "signed, of probability"}

    of: Literal["tvd", "probability", "logit"] = "tvd"
    by: ClassVar[Removal] = "delete"
