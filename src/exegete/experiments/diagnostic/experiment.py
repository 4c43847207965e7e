"""Diagnostic: do a model's weights help another one, which sees single words? (Wiegreffe & Pinter 2019, test 3)

The other model has no context of its own: every word goes through one layer, alone, and weights pool the words. It is
trained with its own attention, with uniform weights, with those of the model in question, imposed text by text in
training and at test, and with those of an adversary: a model trained to predict the same with other weights.

The authors look for: imposed weights help at least as much as its own (imposed − own not below 0), and those of the
adversary do not (imposed − imposed_adversary above 0). Then attention holds something about the words themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.side_by_side import (
    companion_sees,
    comparison_refusal,
    distance,
    float_column,
    see_texts,
    text_facts,
)
from exegete.experiments.common.tallies import clipped_mean, f1_by_seed, majority, of_tasks, values_by_seed
from exegete.measures.divergence import tvd
from exegete.models.capabilities import Selecting
from exegete.models.contract import Predictor
from exegete.models.settings import MODELS
from exegete.tasks.example import Task
from exegete.training.objectives import OBJECTIVES
from exegete.training.recipe import BASE, Fooling, Recipe

OWN, UNIFORM, IMPOSED, ADVERSARY, FAKED = "own", "uniform", "imposed", "adversary", "imposed_adversary"
PAIRS = ((IMPOSED, UNIFORM), (IMPOSED, OWN), (IMPOSED, FAKED))
KEPT = (
    "vectors",
    "size",
    "scale",
    "trainable",
    "outputs",
)  # settings that both models share: the words they start from
LEVEL = ""  # what a number that is no difference is against


@dataclass(frozen=True)
class Diagnostic(Question):
    """A model of single words under weights from four places."""

    needs_labels = True

    of_summary = ("diagnostic",)

    encoder: str = "average"  # the model of single words; words and vectors are those of the model in question
    adversary: bool = True  # whether to train an adversary and impose its weights, too
    adversary_lam: float = 0.003  # λ of the adversary's objective
    epochs: int = 20  # of the adversary's training, at most
    patience: int = 5  # of the same
    warm: bool = False  # whether the adversary starts from the model, with its attention drawn anew
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        MODELS.make(self.encoder)
        OBJECTIVES.make(self._objective)
        if min(self.epochs, self.patience) < 1:
            raise UsageError("experiment 'diagnostic': epochs and patience are 1 or more")

    @property
    def _objective(self) -> str:
        return f"adversary:lam={self.adversary_lam:g}"

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be one attention, over words, whose weights can be imposed."""
        if (reason := comparison_refusal(model)) is not None:
            return reason
        if isinstance(model, Selecting):
            return "it imposes weights of words, and this model has none in a text from which it selects nothing"
        several = len(model.sites) > 1
        return "it imposes weights of words, and this model attends to words in several places" if several else None

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        """Four models of single words; and the adversary, whose weights the last of them gets.

        The adversary has the next seed, so that it is not born as the model itself.
        """
        words = self._words(model)
        found = {
            OWN: Recipe(model=words),
            UNIFORM: Recipe(model=words, attention="uniform"),
            IMPOSED: Recipe(model=words, imposed=BASE),
        }
        if not self.adversary:
            return found
        fooled = Fooling(self.epochs, self.patience, self.warm).recipe(self._objective, seed)
        return found | {ADVERSARY: fooled, FAKED: Recipe(model=words, imposed=ADVERSARY)}

    def _words(self, model: str) -> str:
        """The model of single words that starts from the same words.

        >>> Diagnostic()._words("bilstm:hidden=64,vectors=glove,projection=sparsemax")
        'average:vectors=glove'
        >>> Diagnostic()._words("pair:hidden=64,reads=context")
        'pair:encoder=average,reads=context'
        """
        own, (name, given) = parse(self.encoder), parse(model)
        kept = _chosen(given, *KEPT)
        if name == "pair":  # both texts word by word, and a decoder that sees what the model's decoder sees
            return str(Spec(name, kept | {"encoder": own.name} | own.settings | _chosen(given, "reads", "shared")))
        return str(Spec(own.name, kept | own.settings))

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and weights; `base` and `adversary` are the two models that the weights come from.

        jsd is the divergence of the weights from the base's, tvd that of the predictions (½ Σ |p − p'|); `positive` is
        the class whose F1 counts, if there is one.
        """
        base, labels = see_texts(subject.model, subject.examples), subject.task.labels
        facts = pl.DataFrame(text_facts(subject, base)).drop("predicted")
        gold = torch.tensor([e.label for e in subject.examples])
        every = {BASE: base} | {name: companion_sees(c, subject.examples) for name, c in subject.companions.items()}
        parts = [
            facts.with_columns(
                positive=pl.lit(labels[1] if len(labels) == 2 else None, pl.String),
                weights=pl.lit(name),
                predicted=pl.Series([labels[c] for c in found.answers.tolist()]),
                correct=pl.Series((found.answers == gold).long().numpy()),
                jsd=float_column(distance(base, found)),
                tvd=float_column(tvd(base.probabilities, found.probabilities)),
            )
            for name, found in every.items()
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Accuracy and F1 under all weights, and what imposed weights add to others (`against`), paired by text.

        F1 is that of the second class of two, and the mean over the task's gold classes where there are more. The
        reference of an accuracy is the share of the most frequent class, that of a difference is 0.
        """
        cells = [
            (classes, cell)
            for classes, part in of_tasks(rows)
            for cell in part.partition_by("model", maintain_order=True)
        ]
        return pl.DataFrame(
            [said for classes, cell in cells for said in _levels(cell, classes)], infer_schema_length=None
        )

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """How far every model's weights are from the base's, and its predictions: an adversary's should be near."""
        keys = ["task", "model", "weights"]
        far = rows.filter(pl.col("weights") != BASE).group_by(keys, maintain_order=True)
        same = {"tvd": pl.col("tvd").mean()} if "tvd" in rows.columns else {}  # rows that were kept before have none
        count = {"n": pl.col("jsd").count(), "undefined": pl.col("jsd").null_count()}
        return {"weights": far.agg(**count, jsd=pl.col("jsd").mean(), accuracy=pl.col("correct").mean(), **same)}


def _chosen(settings: Mapping[str, str], *keys: str) -> dict[str, str]:
    """Some settings, where they are given."""
    return {key: settings[key] for key in keys if key in settings}


def _levels(cell: pl.DataFrame, classes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All numbers of one task and model."""
    most_frequent = majority(cell.filter(pl.col("weights") == BASE))
    for measure, weights, against, values in _measured(cell, classes):
        said = {"task": cell["task"][0], "model": cell["model"][0], "measure": measure, "weights": weights}
        reference = 0.0 if against else most_frequent if measure == "accuracy" else None
        level = clipped_mean(values, -1.0 if against else 0.0)
        yield said | {"against": against, "seeds": len(values)} | level | {"reference": reference}


def _measured(cell: pl.DataFrame, classes: Sequence[str]) -> Iterator[tuple[str, str, str, Tensor]]:
    """Measure, weights, what they are against, and a value per text whose mean it is: [seed, example]."""
    groups = {name: cell.filter(pl.col("weights") == name) for name in cell["weights"].unique(maintain_order=True)}
    right = {name: values_by_seed(group, pl.col("correct")) for name, group in groups.items()}
    f1 = {name: f1_by_seed(group, "predicted", classes) for name, group in groups.items()}
    for measure, values in (("accuracy", right), ("f1", f1)):
        yield from ((measure, name, LEVEL, found) for name, found in values.items())
        yield from ((measure, a, b, values[a] - values[b]) for a, b in PAIRS if a in values and b in values)
