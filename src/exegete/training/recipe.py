"""Recipe: how a companion of a model is trained, in what differs from the model's own training.

Many questions of the debate need a second model: one that learnt with uniform weights, with another seed, with the
weights of somebody else, or to predict the same with other weights. An experiment names such companions by recipe; a
study trains each once, whoever asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from exegete.models.capabilities import Trainable, Writing
from exegete.models.contract import Intervention, Predictor
from exegete.training.settings import TrainingSettings

BASE = "base"  # the model itself, where a recipe names a companion


@dataclass(frozen=True)
class Recipe:
    """What differs; nothing given, nothing differs."""

    model: str = ""  # another model's name with settings
    seed: int | None = None
    attention: str = ""  # an intervention by name, in training and ever after
    imposed: str = ""  # the companion (or the base) whose weights it gets, in training and ever after
    objective: str = ""  # by name, instead of likelihood
    warm: bool = False  # starts from the base's trained weights
    redrawn: bool = False  # but with an attention that has learnt nothing yet
    moves: Literal["all", "attention"] = "all"  # what training may change
    epochs: int | None = None
    patience: int | None = None

    @property
    def plain(self) -> bool:
        """Whether it is an ordinary training, which a study may have done already."""
        return not (self.attention or self.imposed or self.objective or self.warm or self.moves != "all")

    def settings(self, given: TrainingSettings) -> TrainingSettings:
        """Those of the base, with this recipe's own; what has its own objective is judged by it on dev."""
        own: dict[str, Any] = {"epochs": self.epochs, "patience": self.patience}
        own["metric"] = "loss" if self.objective else None
        return given.model_copy(update={name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True)
class Fooling:
    """How adversaries of a model are trained: with the next seed, so that they are not born as the model itself."""

    epochs: int
    patience: int
    warm: bool = False  # start from the model, with its attention drawn anew, rather than from scratch

    def recipe(self, objective: str, seed: int, moves: Literal["all", "attention"] = "all") -> Recipe:
        """An adversary of the model with this seed; one whose attention alone moves starts warm."""
        warm = self.warm or moves == "attention"
        return Recipe(
            objective=objective,
            seed=seed + 1,
            warm=warm,
            redrawn=warm,
            moves=moves,
            epochs=self.epochs,
            patience=self.patience,
        )


@dataclass(frozen=True)
class Companion:
    """A model that was trained beside another, with what its attention is ever after."""

    model: Trainable
    intervene: Intervention | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)  # by split, as a checkpoint has them

    @property
    def classifier(self) -> Predictor:
        """The model, where a prediction is a class."""
        assert not isinstance(self.model, Writing)
        return self.model
