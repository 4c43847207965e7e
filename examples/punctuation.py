"""Punctuation: a question of your own with a test of the audit.

Does attention spare punctuation? Weights on commas and full stops explain nothing that a reader could use. The
experiment compares the weight that they get with the weight that they would get if all words had the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from exegete.plugins import EXPERIMENTS, Evidence, Measured, Subject, Test, add_test, by_seed, means


@dataclass(frozen=True)
class Punctuation:
    """The share of words that are punctuation, less the share of attention that they get."""

    texts: int | None = None  # all, unless given
    importances: ClassVar[tuple[str, ...]] = ("attention",)
    splits: ClassVar[tuple[str, ...]] = ()  # the study's

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example."""
        rows = []
        for example, weights in zip(subject.examples, subject.scores["attention"].tolist(), strict=True):
            marks = [not any(map(str.isalnum, word)) for word in example.words]
            got = sum(weight for weight, mark in zip(weights, marks, strict=False) if mark)
            rows.append({"example": example.id, "value": sum(marks) / len(marks) - got})
        return pl.DataFrame(rows)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The mean of every task and model."""
        return means(rows, "spared", bound=1.0)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:  # noqa: ARG002
        """No others."""
        return {}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """None."""
        return {}


def spared(found: Evidence) -> Measured:
    """Values [seed, example] that are compared with the margin; uniform weights would score 0."""
    return Measured(by_seed(found.rows), chance=0.0, against="uniform weights")


EXPERIMENTS.add("punctuation", Punctuation, "does attention spare punctuation?")
add_test(
    Test(
        name="spares_punctuation",
        question="Does attention put less weight on punctuation than uniform weights would?",
        criterion="the share of words that are punctuation, less their share of attention, is above {margin}",
        margin=0.01,
        source="Jain & Wallace 2019",
        experiments=("punctuation",),
        statistic=spared,
        part="weights",
        goals=("sanity",),
        words="whether it spares punctuation",
        says={
            "holds": "It spares punctuation.",
            "fails": "It puts weight on punctuation.",
            "cannot tell": "Whether it spares punctuation is not settled.",
        },
    )
)
