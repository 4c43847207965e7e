"""Statistic: what a test's function gets and gives, and what several of them share.

Two tests are shares of a divergence: 1 − mean JSD / mean JSD after permuting one of the two. Flat weights are near all
others, so a small JSD alone says little. A share of 1: the same weights; 0: as unlike as unrelated ones.
It is a ratio of means: of one text alone the divisor may be near 0.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.names import parse
from exegete.measures.ratios import linearise


class Evidence(NamedTuple):
    """What a test's experiments found on one task and model, and how a study asked them."""

    frames: tuple[pl.DataFrame, ...]  # in the order in which the test names its experiments
    built: tuple[Any, ...]
    margin: float

    @property
    def rows(self) -> pl.DataFrame:
        """Those of the first experiment."""
        return self.frames[0]

    @property
    def experiment(self) -> Any:
        """The first one, with its settings."""
        return self.built[0]


class Measured(NamedTuple):
    """The values that a verdict rests on."""

    values: Tensor  # [seed, example]
    chance: float  # what weights that know nothing would score
    against: str = ""  # what attention is compared with
    doubt: str = ""  # why nothing can be told, whatever the numbers
    ratio: bool = False  # a ratio of sums, which needs more texts than a mean


class Varied(NamedTuple):
    """The values of a test that is asked in several ways, none of which is the right one."""

    values: Mapping[str, Tensor]  # by specification: [seed, example]; NaN in texts that say nothing
    void: Mapping[str, str]  # specifications that don't count, and why
    chance: float

    @property
    def counted(self) -> list[str]:
        """The specifications that count."""
        return [name for name in self.values if name not in self.void]


def by_seed(group: pl.DataFrame, by: str = "seed", **where: str) -> Tensor:
    """The values of the rows where columns have these contents: [seed, example]."""
    chosen = [pl.col(column) == content for column, content in where.items()]
    parts = group.filter(*chosen).sort(by, "example").partition_by(by, maintain_order=True)
    return torch.stack([torch.from_numpy(part["value"].fill_null(math.nan).to_numpy().copy()) for part in parts])


def divergence_share(rows: pl.DataFrame) -> Tensor:
    """1 − mean JSD / mean permuted JSD as values by text, [seed, example]; none where permuting changes nothing."""
    jsd, permuted = (by_seed(rows.with_columns(value=column)) for column in ("jsd", "permuted_jsd"))
    return 1 - linearise(jsd, permuted)


def method_named(methods: Iterable[str], name: str) -> str | None:
    """A method by its name, whatever its settings."""
    return next((method for method in methods if parse(method).name == name), None)


def precision(group: pl.DataFrame) -> pl.DataFrame | None:
    """Attention's precision at k, text by text; None where it was not asked."""
    kept = group.filter(pl.col("ranking") == "signed", pl.col("measure") == "precision_at_k")
    own = method_named(kept["method"].unique(maintain_order=True), "attention")
    return None if own is None else kept.filter(pl.col("method") == own)


def mean_chance(rows: pl.DataFrame) -> float:
    """What a random order would score, on the texts that count."""
    return float(rows.filter(pl.col("value").is_not_null())["chance"].mean() or 0.0)  # type: ignore[arg-type]
