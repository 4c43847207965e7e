"""Asked: a test of the audit before it is judged."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.audits.scorecard import Criteria, Criterion


class Asked(NamedTuple):
    """A test before it is judged."""

    name: str
    task: str
    model: str
    criterion: Criterion
    values: Tensor  # [seed, example]
    threshold: float
    chance: float
    bound: float = 1.0  # no value lies beyond ± this
    against: str = ""  # what attention is compared with
    doubt: str = ""  # why nothing can be told, whatever the numbers
    recipe: bool = False  # about a way of training, whatever the number of seeds

    @property
    def seeds(self) -> int:
        """How many trainings it rests on."""
        return len(self.values)


def by_seed(group: pl.DataFrame, by: str = "seed", **where: str) -> Tensor:
    """The values of the rows where columns have these contents: [seed, example]."""
    chosen = [pl.col(column) == content for column, content in where.items()]
    parts = group.filter(*chosen).sort(by, "example").partition_by(by, maintain_order=True)
    return torch.stack([torch.from_numpy(part["value"].fill_null(math.nan).to_numpy().copy()) for part in parts])


Ask = Callable[[str, str, pl.DataFrame, Any, Criteria], list[Asked]]
