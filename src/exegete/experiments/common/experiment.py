"""Question: what an experiment is unless it says otherwise; one of ours says only what it has of its own.

An experiment is a frozen dataclass whose fields are its settings, so this class has none. Whoever fulfils the contract
(`contract.Experiment`) in another way is an experiment, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import polars as pl

from exegete.experiments.common.contract import Subject
from exegete.experiments.common.side_by_side import comparison_refusal
from exegete.models.contract import Predictor
from exegete.models.openings import unopened
from exegete.tasks.example import Task


class Question(ABC):
    """One question of the debate: of the study's own split, of all its texts, by the weights alone."""

    texts: int | None = None
    of_summary: ClassVar[tuple[str, ...]] = ()  # its charts of the summary, and of the rows
    of_rows: ClassVar[tuple[str, ...]] = ()

    @property
    def importances(self) -> tuple[str, ...]:
        """The importances whose scores it needs: none."""
        return ()

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that it asks about: the study's."""
        return ()

    @abstractmethod
    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example (× pair, measure, …)."""

    @abstractmethod
    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Numbers with n, interval and chance; `rows` carry task, model and seed too."""

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:  # noqa: ARG002
        """Further tables by name: none."""
        return {}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:
        """Charts by name: those that it names, which are functions of its folder's `figure.py`."""
        frames = dict.fromkeys(self.of_summary, summary) | dict.fromkeys(self.of_rows, rows)
        if not frames:
            return {}
        own = next(kind for kind in type(self).__mro__ if {"of_summary", "of_rows"} & set(vars(kind)))
        drawing = import_module(f"{own.__module__.rpartition('.')[0]}.figure")
        return {name: getattr(drawing, name)(frame) for name, frame in frames.items()}

    def run(self, model: Any, task: Any, **settings: Any) -> Any:
        """Ask it: `exegete.experiments.Permutation(draws=100).run(model, task, texts=200)`, as `exegete.ask` does."""
        import exegete  # the front door: an experiment doesn't know the rooms that come after it

        return exegete.ask(self, model, task, **settings)


class OfWeights(Question):
    """A question about the weights of the readout."""

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be weights from which a class is predicted."""
        return unopened(model)


class OfDistributions(Question):
    """A question about weights that are compared as distributions."""

    def unsuited(self, task: Task, model: Predictor) -> str | None:  # noqa: ARG002
        """There must be weights from which a class is predicted, and which are a distribution."""
        return comparison_refusal(model)
