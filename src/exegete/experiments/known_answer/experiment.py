"""Known answer: does an importance find words that were planted so that they decide the class? (Bastings et al. 2021)

The task has a planted shortcut (`planted=token`, `context` or `pair`, see exegete.tasks.planting). Every test text says
one class in its own words and another by the shortcut. Where the model follows the shortcut, planted words are the
reason, and where deleting any of them changes the prediction, all of them are. Precision at k counts how many of them
are among the k highest words, k being their number. What the model obeys in too few texts it has not learnt, and then
nothing follows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.marked_words import (
    MarkRanking,
    check_methods,
    marks,
    over_texts,
    ranking_scores,
    text_columns,
    values_frame,
)
from exegete.experiments.common.summaries import by_keys
from exegete.experiments.faithfulness.experiment import METHODS
from exegete.importance.erasure import erased
from exegete.measures.plausibility import precision_at, precision_chance
from exegete.models.contract import Predictor
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Task

KEYS = ("task", "model", "split", "shortcut", "method", "signed", "ranking", "measure", "where")
OBEYS, NEEDED = "obeys", "needed"
CELL = ("task", "model", "split", "shortcut")
RANKINGS: tuple[MarkRanking, ...] = ("signed", "magnitude")
PRECISION, FIRST = "precision_at_k", "first"


@dataclass(frozen=True)
class KnownAnswer(Question):
    """Every method against planted words."""

    of_summary = ("known_answer",)

    methods: tuple[str, ...] = METHODS
    obedience: float = 0.95  # the share of test texts in which a model must follow the shortcut to have learnt it
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        check_methods(self.methods, "known_answer")
        if not 0 < self.obedience <= 1:
            raise UsageError("experiment 'known_answer': obedience is a share of texts, above 0 and at most 1")

    @property
    def importances(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    @property
    def splits(self) -> tuple[str, ...]:
        """Only the test texts have labels that contradict their words."""
        return ("test",)

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """Words must have been planted."""
        name, settings = parse(task.name)
        if "planted" in settings:
            return None
        written = Spec(name, settings | {"planted": "token"})
        return f"it needs planted words, and task '{task.name}' has none: write {written}"

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, method, ranking and measure; null where the model does not obey."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(reason)
        shortcut = parse(subject.task.name).settings["planted"]
        marked = marks(subject.examples, max(len(e) for e in subject.examples))
        texts = text_columns(subject)
        texts["obeys"] = texts.pop("correct")
        texts["needed"] = _needed(subject, marked).tolist()
        obeys = torch.tensor(texts["obeys"])
        parts = [
            values_frame(
                texts,
                {"shortcut": shortcut, "method": method, "signed": subject.signed.get(method, False), **said},
                value.where(obeys, torch.nan),
                chance,
            )
            for method in self.methods
            if method in subject.scores
            for said, value, chance in _measured(subject, method, marked)
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By method, ranking and measure: n, mean, interval, chance; and whether the model has learnt the shortcut.

        `where` the model obeys, and where it needs every planted word besides: deleting any one changes its prediction.
        Only there are all of them reasons beyond doubt; but methods that delete words are favoured by that choice.
        """
        needed = rows.filter("needed").with_columns(where=pl.lit(NEEDED))
        both = pl.concat([rows.with_columns(where=pl.lit(OBEYS)), needed])
        found = by_keys(both, KEYS, over_texts)
        by_model = self._learnt(rows).group_by(CELL, maintain_order=True)
        learnt = by_model.agg(pl.col("obedience", "needed").mean(), pl.col("learnt").all())
        return found.join(learnt, on=CELL, maintain_order="left")

    def _learnt(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By seed: how many texts, the share that obeys, the share of these that needs every planted word."""
        texts = rows.unique([*CELL, "seed", "example"], maintain_order=True)
        found = texts.group_by(*CELL, "seed", maintain_order=True).agg(
            pl.len().alias("n"),
            pl.col("obeys").mean().alias("obedience"),
            pl.col("needed").filter("obeys").mean().alias("needed"),
        )
        return found.with_columns(learnt=pl.col("obedience") >= self.obedience)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """What every model has learnt, and the methods on toy models whose answer is known by hand."""
        from exegete.experiments.known_answer.toys import toys

        return {"obedience": self._learnt(rows), "toys": toys(self.methods)}


def _measured(subject: Subject, method: str, marked: Tensor) -> Iterator[tuple[dict[str, str], Tensor, Tensor]]:
    """Precision at k, and whether the highest word is a planted one; a tie for the first place counts in part."""
    for by in RANKINGS:
        scores = ranking_scores(subject, method, by)
        chance = precision_chance(scores, marked)
        yield {"ranking": by, "measure": PRECISION}, precision_at(scores, marked, marked.sum(1)), chance
        yield {"ranking": by, "measure": FIRST}, precision_at(scores, marked, 1), chance


def _needed(subject: Subject, marked: Tensor) -> Tensor:
    """Whether the prediction changes with each single planted word deleted: if not, a part is enough, [example].

    A text that says the shortcut's class in its own words too would not change either; in the test split they say
    another.
    """
    model = subject.model
    needed = torch.ones(len(subject.examples), dtype=torch.bool)
    for members in batches_of_one_length(subject.examples, size=256, budget=8192):
        batch = model.collate([subject.examples[i] for i in members])
        text, word = marked[members].to(batch.ids.device).nonzero(as_tuple=True)
        place = batch.words.long().cumsum(1).masked_fill(~batch.words, 0) - 1  # of a token among the words
        logits = erased(model, batch, text, place[text] == word[:, None], "delete")
        here = text.cpu()
        same = logits.argmax(-1).cpu() == subject.predicted[members][here]
        needed[torch.tensor(members)[here[same]]] = False
    return needed
