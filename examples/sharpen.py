"""Sharpen: an intervention and an experiment of your own.

Does a model do better with sharper attention, once it has learnt with it? The intervention raises weights to a power;
the experiment trains a companion under it, and compares what both models get right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
import torch
from torch import Tensor

from exegete.plugins import (
    EXPERIMENTS,
    INTERVENTIONS,
    Recipe,
    Rewrite,
    Site,
    Subject,
    mask_of,
    means,
    predict,
    scaled,
)


@dataclass(frozen=True)
class Sharpen(Rewrite):
    """α_t^power / Σ α^power: above 1 it is sharper, below 1 flatter; 1 changes nothing."""

    power: float = 2.0

    def rewritten(self, site: Site) -> Tensor:
        """Weights of the shape of the site's; `scaled` keeps them inside the mask and makes rows sum to 1."""
        return scaled(site.weights**self.power, mask_of(site))


@dataclass(frozen=True)
class Sharper:
    """The accuracy that a model gains by learning with sharper attention."""

    power: float = 2.0
    texts: int | None = None  # all, unless given
    importances: ClassVar[tuple[str, ...]] = ()  # whose scores `rows` would find in subject.scores
    splits: ClassVar[tuple[str, ...]] = ()  # the study's

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:  # noqa: ARG002
        """The same model and seed, sharpened in training and ever after."""
        return {"sharp": Recipe(attention=f"sharpen:power={self.power:g}")}

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example; value is 1 where only the sharp model is right, −1 where only the other is."""
        sharp, gold = subject.companions["sharp"], torch.tensor([e.label for e in subject.examples])
        answers = predict(sharp.model, subject.examples, sharp.intervene).argmax(-1)  # with its own attention
        gained = (answers == gold).double() - (subject.predicted == gold).double()
        return pl.DataFrame({"example": [e.id for e in subject.examples], "value": gained.numpy()})

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The mean gain of every task and model, with n and interval; 0 is no gain."""
        return means(rows, "gain", bound=1.0)

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:  # noqa: ARG002
        """No others."""
        return {}

    def figures(self, rows: pl.DataFrame, summary: pl.DataFrame) -> Mapping[str, Any]:  # noqa: ARG002
        """None."""
        return {}


INTERVENTIONS.add("sharpen", Sharpen, "weights to a power")
EXPERIMENTS.add("sharper", Sharper, "does a model gain from learning with sharper attention?")
