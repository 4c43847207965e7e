"""The contract of an experiment: subject in, tidy rows out, with a summary table and figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import polars as pl
from torch import Tensor

from exegete.experiments.common.parts import AllRows
from exegete.models.capabilities import Stepwise, Writing
from exegete.models.contract import Predictor
from exegete.tasks.example import Example, Task
from exegete.training.recipe import Companion, Recipe


@dataclass(frozen=True)
class Subject:
    """What an experiment asks about: a model, some texts of a task, and the importances of their words."""

    model: Predictor
    task: Task
    examples: tuple[Example, ...]
    predicted: Tensor  # [example]; empty where whole translations are asked about
    scores: Mapping[str, Tensor]  # by importance, as written: [example, word], NaN beyond a text's end
    mean_length: float  # of all texts that are studied, not of this shard
    signed: Mapping[str, bool] = field(default_factory=dict)  # by importance: saliency or sensitivity
    refused: Mapping[str, str] = field(default_factory=dict)  # importances that are not for this model, and why
    split: str = "test"  # which the texts are of
    companions: Mapping[str, Companion] = field(default_factory=dict)  # models trained beside it, by name

    def facts(self) -> dict[str, Any]:
        """What rows say of every text: example, n (words), gold, predicted."""
        labels = self.task.labels
        return {
            "example": [e.id for e in self.examples],
            "n": [len(e) for e in self.examples],
            "gold": pl.Series([self.task.gold(e) for e in self.examples], dtype=pl.String),
            "predicted": [labels[c] for c in self.predicted.tolist()],
        }


@runtime_checkable
class Selective(Protocol):
    """An experiment that is not for every task or model."""

    def unsuited(self, task: Task, model: Predictor) -> str | None:
        """Why it can't be asked about a task and a model, as a sentence; None if it can."""


def unsuited(experiment: "Experiment", task: Task, model: Predictor) -> str | None:
    """Why an experiment can't be asked about a task and a model, or None."""
    if not task.labelled and getattr(experiment, "needs_labels", False):
        return "it counts how often the model is right, and these texts have no labels"
    return experiment.unsuited(task, model) if isinstance(experiment, Selective) else None


def asks_whole(experiment: "Experiment") -> bool:
    """Whether an experiment is about whole translations (it has `whole = True`), rather than about one word of each.

    Its subject is then the translator itself, with sources and references, and nothing predicted beforehand. Of a
    classifier it is asked as any other.
    """
    return bool(getattr(experiment, "whole", False))


@runtime_checkable
class Accompanied(Protocol):
    """An experiment that needs other trained models beside the one it asks about."""

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:
        """How they are trained, by name, for a model as written and its seed; a later one may build on an earlier."""


def recipes(experiment: "Experiment", model: str, seed: int) -> Mapping[str, Recipe]:
    """The companions that an experiment needs."""
    return experiment.companions(model, seed) if isinstance(experiment, Accompanied) else {}


@runtime_checkable
class Careful(Protocol):
    """An experiment whose numbers mean less on some tasks."""

    def caveats(self, task: Task) -> list[str]:
        """What a reader must know, in sentences."""


def caveats(experiment: "Experiment", task: Task) -> list[str]:
    """What a reader must know of an experiment on a task."""
    return experiment.caveats(task) if isinstance(experiment, Careful) else []


@runtime_checkable
class Building(Protocol):
    """An experiment that scores words by itself, beside or instead of what it finds in `subject.scores`."""

    @property
    def builds(self) -> tuple[str, ...]:
        """The importances that it makes by name: its rows depend on their code."""


def builds(experiment: "Experiment") -> tuple[str, ...]:
    """The importances that an experiment makes by name."""
    return experiment.builds if isinstance(experiment, Building) else ()


@runtime_checkable
class Streaming(Protocol):
    """An experiment of many rows a text, told of without holding them all."""

    @property
    def shown(self) -> pl.Expr | None:
        """Which rows its charts need beside the summary; None: none."""

    @property
    def judged(self) -> pl.Expr:
        """Which rows the tests of the audit need."""

    def streamed(self, parts: AllRows) -> tuple[pl.DataFrame, Mapping[str, pl.DataFrame]]:
        """`summary` and `tables` of rows on disk."""


@runtime_checkable
class Growing(Protocol):
    """An experiment that more texts can be asked later: what the first of them said stays.

    Its rows are of one text each, whatever is asked beside it; `texts` is how many of the split that a study is about.
    """

    def of_a_text(self) -> "Experiment":
        """The experiment without settings that change no text's rows: how many are asked, and how they are judged."""

    def texts_of(self, split: str) -> int | None:
        """How many texts of a split are asked; all: None."""


def text_limit(experiment: "Experiment", split: str) -> int | None:
    """How many texts of a split an experiment asks; all: None."""
    return experiment.texts_of(split) if isinstance(experiment, Growing) else experiment.texts


class Experiment(Protocol):
    """One question of the debate."""

    @property
    def importances(self) -> tuple[str, ...]:
        """The importances whose scores it needs; `rows` finds those that the model allows in `subject.scores`."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that it asks about; none: the study's own. `rows` get a column `split`."""

    @property
    def texts(self) -> int | None:
        """How many texts of each split it asks about (a keyed choice), where asking all would take too long."""

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example (× pair, measure, …)."""

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Numbers with n, interval and chance; `rows` carry task, model and seed too."""

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """Further tables by name, such as those that a paper's authors produced."""

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Charts by name."""


ONE, PAIR, GENERATION = "one text", "pair of texts", "generation"
KINDS = (ONE, PAIR, GENERATION)


def subject_kind(subject: Subject) -> str:
    """What a subject's model does with texts: classes of one or two, or the next word of a third."""
    if isinstance(subject.model, Stepwise | Writing):
        return GENERATION
    return PAIR if subject.task.kind == "pair" else ONE
