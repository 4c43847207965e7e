"""Deception: can a model use words that its attention hides, and which methods still find them? (Pruthi et al. 2020)

On a task where planted words decide the class (exegete.tasks.planting), a second model is trained with a penalty on the
attention that these words get (exegete.training.deception). If it is as accurate, then attention has been made to hide
the reason of every prediction. Where a model obeys the planted words they are that reason, and precision at k says
which methods find them all the same: k is their number, and a random ranking scores their share of the text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import Question
from exegete.experiments.common.marked_words import check_methods, marks, over_texts
from exegete.experiments.common.side_by_side import comparison_refusal, float_column, see_texts
from exegete.experiments.known_answer.experiment import KnownAnswer
from exegete.importance.catalogue import IMPORTANCES
from exegete.importance.contract import Importance, refusal
from exegete.measures.plausibility import precision_at, precision_chance
from exegete.models.contract import Predictor
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.training.objectives import OBJECTIVES
from exegete.training.recipe import Recipe

BASE, DECEIVER = "base", "deceiver"
METHODS = (
    "attention", "gradient_x_input", "integrated_gradients", "lrp", "leave_one_out:of=logit", "random",
)  # fmt: skip
CELL = ("task", "model", "split", "who", "lam")
KEYS = (*CELL, "measure", "method")
MASS, ACCURACY, PRECISION = "mass", "accuracy", "precision_at_k"


@dataclass(frozen=True)
class DeceptionExperiment(Question):
    """A model and the same one trained to attend elsewhere, with what methods find in both."""

    needs_labels = True

    of_summary = ("deception",)

    lams: tuple[float, ...] = (0.1,)  # λ of the penalty on hidden words
    methods: tuple[str, ...] = METHODS
    epochs: int | None = 20  # of the second training, which has more to learn; none: as many as the model's own
    patience: int | None = 5
    obedience: float = (
        0.95  # the share of test texts in which a model must follow the planted words to have learnt them
    )
    texts: int | None = None  # all, unless given

    def __post_init__(self) -> None:
        check_methods(self.methods, "deception")
        if not self.lams or len({f"{lam:g}" for lam in self.lams}) < len(self.lams):
            raise UsageError("experiment 'deception': give at least one λ in `lams`, and every one once")
        for name, catalogue in [(_objective(lam), OBJECTIVES) for lam in self.lams] + [
            (method, IMPORTANCES) for method in self.methods
        ]:
            catalogue.make(name)
        if min(self.epochs or 1, self.patience or 1) < 1 or 0 in (self.epochs, self.patience):
            raise UsageError("experiment 'deception': epochs and patience are 1 or more")
        if not 0 < self.obedience <= 1:
            raise UsageError("experiment 'deception': obedience is a share of texts, above 0 and at most 1")

    @property
    def builds(self) -> tuple[str, ...]:
        """Every method."""
        return self.methods

    @property
    def splits(self) -> tuple[str, ...]:
        """Only test texts all hold planted words that decide."""
        return ("test",)

    def unsuited(self, task: Task, model: Predictor) -> str | None:
        """Words must have been planted, and attention must pool."""
        return KnownAnswer().unsuited(task, model) or comparison_refusal(model)

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:  # noqa: ARG002
        """The model from its own start, with another objective."""
        return {
            f"{DECEIVER}_{lam:g}": Recipe(objective=_objective(lam), epochs=self.epochs, patience=self.patience)
            for lam in self.lams
        }

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example, model and method; precision is null where the model does not obey."""
        reason = self.unsuited(subject.task, subject.model)
        if reason is not None:
            raise UsageError(reason)
        models = {BASE: subject.model} | {name: companion.classifier for name, companion in subject.companions.items()}
        parts = [part for name, model in models.items() for part in self._of(subject, name, model)]
        return pl.concat(parts).sort("example", maintain_order=True)

    def _of(self, subject: Subject, name: str, model: Predictor) -> Iterator[pl.DataFrame]:
        """The rows of one model, a frame per method that it allows."""
        examples, labels = subject.examples, subject.task.labels
        found, marked = see_texts(model, examples), marks(examples, max(len(e) for e in examples))
        who, _, lam = name.partition("_")
        facts = pl.DataFrame(
            {
                "example": [e.id for e in examples],
                "n": [len(e) for e in examples],
                "marked": [len(e.rationale) for e in examples],
                "gold": [labels[e.label] for e in examples],
                "predicted": [labels[c] for c in found.answers.tolist()],
                "correct": (found.answers == torch.tensor([e.label for e in examples])).numpy(),
                "mass": _mass(found.key_weights, marked),
            }
        ).with_columns(who=pl.lit(who), lam=pl.lit(float(lam) if lam else None, pl.Float64))
        obeys = torch.from_numpy(facts["correct"].to_numpy().copy())
        for method in self.methods:
            importance: Importance = IMPORTANCES.make(method)
            if refusal(importance, model) is not None:
                continue
            scores = _scores(importance, model, examples)
            value = precision_at(scores, marked, marked.sum(1)).where(obeys, torch.nan)
            chance = precision_chance(scores, marked).where(obeys, torch.nan)
            yield facts.with_columns(method=pl.lit(method), value=float_column(value), chance=float_column(chance))

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """By model and λ: the mass on planted words, accuracy, and every method's precision, with n and interval.

        Chance of the mass is what uniform weights would give, that of precision what a random ranking would; that of
        accuracy is the share of the most frequent class. `learnt`: with every seed the model obeys in enough texts.
        Where it does not, being right may be chance, planted words need not be the reason, and nothing follows.
        """
        found = []
        for key, cell in rows.partition_by(CELL, as_dict=True, maintain_order=True).items():
            texts = cell.unique(["seed", "example"], maintain_order=True)
            share = (pl.col("marked") / pl.col("n")).alias("chance")
            mass = texts.with_columns(share, value=pl.col("mass"))
            right = texts.with_columns(value=pl.col("correct").cast(pl.Float64), chance=pl.lit(_majority(texts)))
            measured = [(MASS, "attention", mass), (ACCURACY, "", right)]
            by_method = cell.partition_by("method", as_dict=True, maintain_order=True)
            measured += [(PRECISION, str(method), group) for (method,), group in by_method.items()]
            by_seed = texts.group_by("seed").agg(pl.col("correct").mean())["correct"]
            learnt = {"learnt": bool((by_seed >= self.obedience).all())}
            found += [
                dict(zip(KEYS, (*key, measure, method), strict=True)) | over_texts(group) | learnt
                for measure, method, group in measured
            ]
        return pl.DataFrame(found, schema_overrides={"lam": pl.Float64}, infer_schema_length=None)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """As Pruthi et al. print it: accuracy and mass of every model, a row each."""
        found = self.summary(rows).filter(pl.col("measure") != PRECISION)
        wide = found.pivot(
            "measure", index=[*CELL, "seeds", "learnt"], values=["mean", "low", "high"], maintain_order=True
        )
        order = [f"{end}_{measure}" for measure in (ACCURACY, MASS) for end in ("mean", "low", "high")]
        return {"pruthi": wide.select(*CELL, "seeds", *order, "learnt")}


def _objective(lam: float) -> str:
    return f"deception:lam={lam:g}"


def _mass(weights: Tensor, marked: Tensor) -> pl.Series:
    """The weight of planted words, [example]; null in a text that has no others, where nothing can be hidden."""
    mass = weights.nan_to_num(0.0).where(marked, 0.0).sum(-1)
    return float_column(mass.where((~weights.isnan() & ~marked).any(-1), torch.nan))


def _scores(importance: Importance, model: Predictor, examples: tuple[Example, ...]) -> Tensor:
    """A method's scores of all words, for the predicted class, float64 [example, word]; NaN beyond a text's end."""
    scores = torch.full((len(examples), max(len(e) for e in examples)), torch.nan, dtype=torch.float64)
    for members in batches_of_one_length(examples, size=256, budget=8192):
        batch = model.collate([examples[i] for i in members])
        values = importance(model, batch).values.detach().double()
        for place, row, words in zip(members, values, batch.words, strict=True):
            scores[place, : int(words.sum())] = row[words].cpu()
    return scores


def _majority(texts: pl.DataFrame) -> float:
    """The share of the most frequent class."""
    return float(texts["gold"].value_counts()["count"].to_numpy().max()) / texts.height
