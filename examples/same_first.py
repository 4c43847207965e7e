"""Same first: a measure of your own, and the smallest experiment that uses it.

Do attention and gradient put the same word first? Two lists of n unrelated scores do so once in n times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
from torch import Tensor

from exegete.plugins import EXPERIMENTS, MEASURES, Subject, means


def same_first(a: Tensor, b: Tensor) -> Tensor:
    """1 where two lists [..., item] have their highest value at the same item, else 0; NaN marks absent items."""
    first, second = (x.nan_to_num(nan=-float("inf")).argmax(-1) for x in (a, b))
    return (first == second).double()  # [...]


@dataclass(frozen=True)
class SameFirst:
    """How often two importances put the same word first."""

    first: str = "attention"
    second: str = "gradient"
    texts: int | None = None
    splits: ClassVar[tuple[str, ...]] = ()

    @property
    def importances(self) -> tuple[str, ...]:
        """Whose scores `rows` finds in subject.scores."""
        return (self.first, self.second)

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example: the measure, and what unrelated scores would give."""
        a, b = (subject.scores[name] for name in self.importances)  # [example, word]
        chance = 1 / (~a.isnan()).sum(-1).double()
        found = {"value": same_first(a, b).numpy(), "chance": chance.numpy()}
        return pl.DataFrame({"example": [e.id for e in subject.examples], **found})

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The share of texts, with n, interval and chance."""
        return means(rows, "same").with_columns(chance=pl.lit(rows["chance"].mean()))

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:  # noqa: ARG002
        """No others."""
        return {}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """None."""
        return {}


MEASURES.add("same_first", same_first, "1 where two lists have the same item first")
EXPERIMENTS.add("same_first", SameFirst, "do two importances put the same word first?")
