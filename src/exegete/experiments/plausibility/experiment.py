"""Plausibility: does an importance mark the words that people marked? (DeYoung et al. 2020)

Average precision of the scores, token F1 and span F1 of the k highest words, each beside what a random ranking scores.
A rationale gives the reason for the gold label, scores explain the predicted one: where the two differ there is little
to expect, so a second summary is over the texts that were predicted right. High values please people; they say nothing
of what the model does (Jacovi & Goldberg 2020).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
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
from exegete.measures.plausibility import auprc, auprc_chance, iou_f1, iou_f1_chance, token_f1, token_f1_chance
from exegete.models.contract import Predictor
from exegete.tasks.disk import column_of
from exegete.tasks.example import Example, Task

MEASURES = ("auprc", "token_f1", "iou_f1")
KEYS = ("task", "model", "split", "method", "signed", "ranking", "measure", "texts")
WITH_RATIONALES = "choose eraser_movies, sst (weak ones), or a file with a field `rationale`"


class _AskedTexts(NamedTuple):
    """What every method is asked about some texts."""

    marked: Tensor  # [example, word]
    k: Tensor  # [example]
    ids: Tensor
    spans: Tensor  # [example]: the chance level of span F1


@dataclass(frozen=True)
class Plausibility(Question):
    """Every method against the words that people marked."""

    of_summary = ("plausibility",)

    methods: tuple[str, ...] = METHODS
    ranking: MarkRanking = "signed"  # words for the predicted class first, or words that matter either way
    k: Literal["rationale", "share"] = "rationale"  # as many words as the text's own rationale, or the mean share
    draws: int = 10  # random rankings per text for the chance level of spans
    seed: int = 0  # of these, and of the order of ties
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        check_methods(self.methods, "plausibility")
        if self.draws < 1:
            raise UsageError("experiment 'plausibility': the chance level of spans needs at least 1 of `draws`")

    @property
    def importances(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """Somebody must have marked words."""
        if any(column_of(split, "marked").any() for split in task.splits.values()):
            return None
        return f"task '{task.name}' has no rationales: {WITH_RATIONALES}"

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, method and measure; a text without marks, or all marked, has null."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(reason)
        every = subject.task.split(subject.split)
        marked = marks(subject.examples, max(len(e) for e in subject.examples))
        size = self._size(marked, subject, every)
        asked = _AskedTexts(marked, size, *self._spans(subject, marked, size))
        texts = text_columns(subject) | {"k": size.tolist()}
        parts = [
            values_frame(texts, {"method": method, "signed": subject.signed.get(method, False), **said}, value, chance)
            for method in self.methods
            if method in subject.scores
            for said, value, chance in self._measured(ranking_scores(subject, method, self.ranking), asked)
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _spans(self, subject: Subject, marked: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Ids, and what random rankings score on spans: the same for every method."""
        ids = torch.tensor([e.id for e in subject.examples])
        words = torch.arange(marked.shape[1]) < torch.tensor([[len(e)] for e in subject.examples])
        return ids, iou_f1_chance(marked, words, k, ids, self.draws, self.seed)

    def _measured(self, scores: Tensor, asked: _AskedTexts) -> Iterator[tuple[dict[str, str], Tensor, Tensor]]:
        marked, k, ids, spans = asked
        found = (
            ("auprc", auprc(scores, marked), auprc_chance(scores, marked)),
            ("token_f1", token_f1(scores, marked, k), token_f1_chance(scores, marked, k)),
            ("iou_f1", iou_f1(scores, marked, k, ids, self.seed), spans),
        )
        for measure, value, chance in found:
            yield {"ranking": self.ranking, "measure": measure}, value, chance

    def _size(self, marked: Tensor, subject: Subject, every: Sequence[Example]) -> Tensor:
        """How many words are taken as marked, [example]."""
        if self.k == "rationale":
            return marked.sum(1)
        shares = [len(e.rationale) / len(e) for e in every if e.rationale]
        lengths = torch.tensor([len(e) for e in subject.examples])
        return (lengths * (sum(shares) / len(shares))).round().long().clamp(min=1)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method and measure, over all texts and over those predicted right: n, mean, interval, chance."""
        return all_and_right(rows, KEYS)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """As DeYoung et al. print it: a line per method, a column per measure."""
        index = ["task", "model", "split", "ranking", "method"]
        wide = rows.pivot("measure", index=index, values="value", aggregate_function="mean", maintain_order=True)
        return {"methods": wide.sort(*index[:4], MEASURES[0], descending=[False] * 4 + [True], maintain_order=True)}
