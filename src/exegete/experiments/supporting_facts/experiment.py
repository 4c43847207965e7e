"""Supporting facts: does an importance find the sentences that answer the question? (Weston et al. 2015)

Passages of pair tasks such as `stories` and `babi` come with the sentences that a question needs. A sentence scores as
much as its highest word (or the mean, or the sum, of its words). Precision at k is the share of the supporting
sentences among the k highest, k being their number. A model that answers wrongly may have looked elsewhere for good
reason, so a second summary is over the texts that it answers right; and it may answer right without the facts, where
a distractor says the same place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError, unknown
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.marked_words import (
    MarkRanking,
    all_and_right,
    check_methods,
    marks,
    ranking_scores,
    text_columns,
    values_frame,
)
from exegete.experiments.faithfulness.experiment import METHODS
from exegete.measures.plausibility import precision_at, precision_chance
from exegete.models.contract import Predictor
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example, Task
from exegete.tasks.sentences import sentences

KEYS = ("task", "model", "split", "method", "signed", "ranking", "measure", "texts")
PRECISION, FIRST = "precision_at_k", "first"
RANKINGS: tuple[MarkRanking, ...] = ("signed", "magnitude")
SentenceScore = Literal["max", "mean", "sum"]


@dataclass(frozen=True)
class SupportingFacts(Question):
    """Every method against the sentences that a question needs."""

    of_summary = ("supporting_facts",)

    methods: tuple[str, ...] = METHODS
    of: SentenceScore = "max"  # what a sentence scores, of the scores of its words
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        check_methods(self.methods, "supporting_facts")
        if self.of not in get_args(SentenceScore):
            raise unknown("way to score a sentence", self.of, get_args(SentenceScore))

    @property
    def importances(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """Whole sentences must be known to support the answer."""
        if task.kind == "pair" and column_of(task.split("test"), "marked").any():
            return None
        return f"it needs passages with supporting sentences, and '{task.name}' has none: use stories or babi"

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, method, ranking and measure; null where every sentence supports the answer."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(reason)
        texts, owner = text_columns(subject), sentence_owners(subject.examples)
        supporting = _of_sentences(marks(subject.examples, owner.shape[1]).double(), owner, "max") > 0
        parts = [
            values_frame(texts, {"method": method, "signed": subject.signed.get(method, False), **said}, value, chance)
            for method in self.methods
            if method in subject.scores
            for said, value, chance in self._measured(subject, method, supporting, owner)
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _measured(
        self, subject: Subject, method: str, supporting: Tensor, owner: Tensor
    ) -> Iterator[tuple[dict[str, str], Tensor, Tensor]]:
        """Precision at k, and whether the highest sentence is a supporting one."""
        for by in RANKINGS:
            scores = _of_sentences(ranking_scores(subject, method, by).double(), owner, self.of)
            chance = precision_chance(scores, supporting)
            yield {"ranking": by, "measure": PRECISION}, precision_at(scores, supporting, supporting.sum(1)), chance
            yield {"ranking": by, "measure": FIRST}, precision_at(scores, supporting, 1), chance

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method, ranking and measure, over all texts and over those answered right: n, mean, interval, chance."""
        return all_and_right(rows, KEYS)


def sentence_owners(examples: tuple[Example, ...]) -> Tensor:
    """Which sentence of the passage every word is in, [example, word]; -1 beyond its end."""
    width = max(len(e) for e in examples)
    return torch.tensor([[*(numbers := sentences(e.words)), *[-1] * (width - len(numbers))] for e in examples])


def _of_sentences(values: Tensor, owner: Tensor, of: SentenceScore) -> Tensor:
    """What every sentence scores, [example, sentence]; NaN beyond the last: values and owner are [example, word]."""
    width = int(owner.max()) + 1
    real = owner >= 0
    words = values[:, : owner.shape[1]].where(real, 0)
    count = torch.zeros(len(owner), width + 1, dtype=torch.float64).scatter_add_(1, owner + 1, real.double())[:, 1:]
    if of == "max":
        lowest = torch.full((len(owner), width + 1), -torch.inf, dtype=torch.float64)
        found = lowest.scatter_reduce(1, owner + 1, words.where(real, -torch.inf), "amax")[:, 1:]
    else:
        found = torch.zeros(len(owner), width + 1, dtype=torch.float64).scatter_add_(1, owner + 1, words)[:, 1:]
        found = found / count.clamp(min=1) if of == "mean" else found
    return found.where(count > 0, torch.nan)
