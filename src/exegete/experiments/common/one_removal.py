"""One removal: the highest weight goes, or a random other one instead (Serrano & Smith 2019, section 4).

i* = argmax α, r = a random other key. `single_weight` measures how far the output moves, `decision_flips` whether the
decision does; the same seed gives both the same r.
"""

from abc import abstractmethod
from dataclasses import dataclass

import polars as pl
from torch import Tensor

from exegete.base.places import places
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import OfWeights
from exegete.experiments.common.pooling import Pooled
from exegete.experiments.common.removal import Sampler, Single, removal_frame, single


@dataclass(frozen=True)
class OneRemoved(OfWeights):
    """The highest weight against a random other one."""

    sampler: Sampler = "other"  # or "legacy": any key but the first, which may be the highest itself
    seed: int = 0
    texts: int | None = None  # all, unless given

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example: the difference of weights, and what both removals did."""
        return removal_frame(subject, self._measured)

    def _measured(self, part: Pooled) -> pl.DataFrame:
        found = single(part, self.sampler, self.seed)
        measured = {
            "place": places(part.ids), "keys": found.keys, "difference": found.difference,
            **self.compared(found), "same": found.same, "emptied": found.emptied,
        }  # fmt: skip
        return pl.DataFrame({name: column.cpu().numpy() for name, column in measured.items()})

    @abstractmethod
    def compared(self, found: Single) -> dict[str, Tensor]:
        """What i* did, what r did, and their difference as `value`: [batch] each."""
