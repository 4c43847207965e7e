"""Diagnostic: do a model's weights help another one, which sees single words? (Wiegreffe & Pinter 2019, test 3)

The other model has no context of its own: every word goes through one layer, alone, and weights pool the words. It is
trained with its own attention, with uniform weights, with those of the model in question, imposed text by text in
training and at test, and with those of an adversary: a model trained to predict the same with other weights.

The authors look for: imposed weights help at least as much as its own (imposed − own not below 0), and those of the
adversary do not (imposed − imposed_adversary above 0). Then attention holds something about the words themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.base.names import Spec, parse
from exegete.experiments.beside import companion_sees, distance, numbers, seen, text_facts, unread
from exegete.experiments.contract import Subject
from exegete.experiments.summaries import columns, interval_of, number
from exegete.measures.ratios import f1_values
from exegete.models.contract import AttentionModel
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
class Diagnostic:
    """A model of single words under weights from four places."""

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

    @property
    def importances(self) -> tuple[str, ...]:
        """None: it looks at predictions."""
        return ()

    @property
    def splits(self) -> tuple[str, ...]:
        """The study's."""
        return ()

    def unsuited(self, task: Task, model: AttentionModel) -> str | None:  # noqa: ARG002
        """There must be one attention, over words, whose weights can be imposed."""
        if (reason := unread(model)) is not None:
            return reason
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
        """
        own, given = parse(self.encoder), parse(model).settings
        return str(Spec(own.name, {key: given[key] for key in KEPT if key in given} | own.settings))

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and weights; `base` and `adversary` are the two models that the weights come from.

        jsd is the divergence of the weights from the base's; `positive` is the class whose F1 counts, if there is one.
        """
        base, labels = seen(subject.model, subject.examples), subject.task.labels
        facts = pl.DataFrame(text_facts(subject, base)).drop("predicted")
        gold = torch.tensor([e.label for e in subject.examples])
        every = {BASE: base} | {name: companion_sees(c, subject.examples) for name, c in subject.companions.items()}
        parts = [
            facts.with_columns(
                positive=pl.lit(labels[1] if len(labels) == 2 else None, pl.String),
                weights=pl.lit(name),
                predicted=pl.Series([labels[c] for c in found.answers.tolist()]),
                correct=pl.Series((found.answers == gold).long().numpy()),
                jsd=numbers(distance(base, found)),
            )
            for name, found in every.items()
        ]
        return pl.concat(parts).sort("example", maintain_order=True)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Accuracy and F1 under all weights, and what imposed weights add to others (`against`), paired by text.

        F1 is that of the second class of two, and the mean over classes where there are more. The reference of an
        accuracy is the share of the most frequent class, that of a difference is 0.
        """
        found = []
        for (task, model), cell in rows.partition_by(["task", "model"], as_dict=True, maintain_order=True).items():
            for measure, weights, against, values in _measured(cell):
                reference = 0.0 if against else _majority(cell) if measure == "accuracy" else None
                said = {"task": task, "model": model, "measure": measure, "weights": weights, "against": against}
                found.append(said | _numbers(values, -1.0 if against else 0.0) | {"reference": reference})
        return pl.DataFrame(found, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """How far every model's weights are from the base's."""
        keys = ["task", "model", "weights"]
        far = rows.filter(pl.col("weights") != BASE).group_by(keys, maintain_order=True)
        count = {"n": pl.col("jsd").count(), "undefined": pl.col("jsd").null_count()}
        return {"weights": far.agg(**count, jsd=pl.col("jsd").mean(), accuracy=pl.col("correct").mean())}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """Accuracy and F1 under all weights."""
        from exegete.figures import diagnostic

        return {"diagnostic": diagnostic.diagnostic(summary)}


def _measured(cell: pl.DataFrame) -> Iterator[tuple[str, str, str, Tensor]]:
    """Measure, weights, what they are against, and a value per text whose mean it is: [seed, example]."""
    names = cell["weights"].unique(maintain_order=True).to_list()
    for measure, of in (("accuracy", _right), ("f1", _f1)):
        values = {name: of(cell.filter(pl.col("weights") == name)) for name in names}
        yield from ((measure, name, LEVEL, values[name]) for name in names)
        yield from ((measure, a, b, values[a] - values[b]) for a, b in PAIRS if a in values and b in values)


def _right(group: pl.DataFrame) -> Tensor:
    return _by_seed(group, pl.col("correct"))


def _f1(group: pl.DataFrame) -> Tensor:
    """F1 of the positive class, or the mean over all classes that texts have or get."""
    positive = group["positive"][0]
    classes = [positive] if positive is not None else sorted({*group["gold"], *group["predicted"]})
    parts = []
    for name in classes:
        predicted, gold = (_by_seed(group, pl.col(column) == name) == 1 for column in ("predicted", "gold"))
        parts.append(f1_values(predicted, gold))
    return torch.stack(parts).mean(0)


def _by_seed(group: pl.DataFrame, value: pl.Expr) -> Tensor:
    """[seed, example], float64."""
    valued = group.with_columns(value=value.cast(pl.Float64), every=pl.lit(0))
    return columns(valued, ["every"]).values[0]


def _majority(cell: pl.DataFrame) -> float:
    """The share of the most frequent class among the texts."""
    texts = cell.filter(pl.col("weights") == BASE)
    return float(texts["gold"].value_counts()["count"].to_numpy().max()) / texts.height


def _numbers(values: Tensor, least: float) -> dict[str, Any]:
    """Seeds, n, mean and interval, which ends where no value can be."""
    interval = interval_of(values)
    low, high = number(interval.low), number(interval.high)
    return {
        "seeds": len(values),
        "n": interval.n,
        "mean": number(interval.mean),
        "low": None if low is None else max(least, low),
        "high": None if high is None else min(1.0, high),
    }
