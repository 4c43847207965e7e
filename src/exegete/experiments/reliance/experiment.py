"""Reliance: is a model that needs its attention harder to fake? (Neely & Schouten 2020, section 7, their own proposal)

One point per task and model, the mean over its seeds, whose trainings lie together. x: the accuracy lost when attention
is uniform in training and ever after. y: how good the best adversary is, a model trained to predict the same with other
weights: the JSD of its weights to the model's own where predictions are nearly equal (mean TVD up to a tolerance), and
the accuracy that it loses. The authors guess that y falls as x grows.

The accuracy that an adversary loses has the base's accuracy in it, on the same texts, and so has x: a base that is
right by luck raises both. They go together if nothing else does, so that relation has neither interval nor p. (Disjoint
halves of the texts would not mend it: luck of the base's *training* is in both halves.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.common.experiment import OfDistributions
from exegete.experiments.common.side_by_side import companion_sees, distance, float_column, see_texts, text_facts
from exegete.experiments.common.summaries import or_none
from exegete.measures.divergence import tvd
from exegete.measures.points import Related, relate
from exegete.measures.statistics import bootstrap_mean
from exegete.training.objectives import OBJECTIVES
from exegete.training.recipe import Fooling, Recipe

UNIFORM, ADVERSARY = "uniform", "adversary"
MODEL = ["task", "model"]
POINT = [*MODEL, "seed"]
TEST = "test"
RELATED = dict.fromkeys(("value", "low", "high", "p"), pl.Float64)  # null in every row, perhaps
SHARED = "x and y share the base's accuracy: no p"
FAKED = ("jsd", "tvd", "lost")  # numbers of the best adversary


@dataclass(frozen=True)
class Reliance(OfDistributions):
    """What uniform weights cost, and how far an adversary's are from a model's own."""

    needs_labels = True

    of_summary = ("reliance",)

    lams: tuple[float, ...] = (0.001, 0.003, 0.01)  # λ of the adversaries' objective
    epochs: int = 20  # of an adversary's training, at most
    patience: int = 5  # of the same
    warm: bool = False  # whether adversaries start from the model, with its attention drawn anew
    tolerance: float = 0.05  # mean TVD up to which an adversary predicts the same
    choose_on: str = "dev"  # the split on which the best adversary is chosen; it is reported on test
    texts: int | None = None  # of each split; all, unless given

    def __post_init__(self) -> None:
        if not self.lams or len({f"{lam:g}" for lam in self.lams}) < len(self.lams):
            raise UsageError("experiment 'reliance': give at least one λ in `lams`, and every one once")
        for lam in self.lams:
            OBJECTIVES.make(_objective(lam))
        if min(self.epochs, self.patience) < 1:
            raise UsageError("experiment 'reliance': epochs and patience are 1 or more")
        if not 0 < self.tolerance <= 1:
            raise UsageError("experiment 'reliance': tolerance is a TVD, above 0 and at most 1")
        if self.choose_on == TEST:
            raise UsageError("experiment 'reliance': choose the best adversary on another split than test")

    @property
    def splits(self) -> tuple[str, ...]:
        """One to choose the best adversary on, one to report it on."""
        return (self.choose_on, TEST)

    def companions(self, model: str, seed: int) -> Mapping[str, Recipe]:  # noqa: ARG002
        """The model with uniform weights, and an adversary for every λ.

        Adversaries have the next seed, so that they are not born as the model itself.
        """
        found = {UNIFORM: Recipe(attention="uniform")}
        for lam in self.lams:
            found[f"{ADVERSARY}_{lam:g}"] = Fooling(self.epochs, self.patience, self.warm).recipe(_objective(lam), seed)
        return found

    def rows(self, subject: Subject) -> pl.DataFrame:
        """One row per example and companion; jsd is null for a text of one key."""
        base, gold = see_texts(subject.model, subject.examples), torch.tensor([e.label for e in subject.examples])
        facts = pl.DataFrame(text_facts(subject, base)).with_columns(correct=_right(base.answers, gold))
        parts = []
        for name, companion in subject.companions.items():
            other = companion_sees(companion, subject.examples)
            kind, _, lam = name.partition("_")
            parts.append(
                facts.with_columns(
                    companion=pl.lit(kind),
                    lam=pl.lit(float(lam) if lam else None, pl.Float64),
                    companion_correct=_right(other.answers, gold),
                    tvd=float_column(tvd(base.probabilities, other.probabilities)),
                    jsd=float_column(distance(base, other)),
                )
            )
        return pl.concat(parts).sort("example", maintain_order=True)

    def summary(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Every trained model, each number with its interval over texts.

        drop is the accuracy lost with uniform weights; jsd, tvd and lost (accuracy) are those of the adversary of the
        largest mean JSD among those within the tolerance, chosen on other texts. Where none is, they are null.
        """
        points = rows.partition_by(POINT, as_dict=True, maintain_order=True)
        found = [dict(zip(POINT, key, strict=True)) | self._point(cell) for key, cell in points.items()]
        nullable = ["lam", *(f"{name}{end}" for name in FAKED for end in ("", "_low", "_high"))]
        return pl.DataFrame(found, schema_overrides=dict.fromkeys(nullable, pl.Float64))

    def _point(self, cell: pl.DataFrame) -> dict[str, Any]:
        lost = pl.col("correct") - pl.col("companion_correct")
        test = cell.filter(pl.col("split") == TEST).with_columns(lost=lost)
        uniform = test.filter(pl.col("companion") == UNIFORM)
        lam = self._best(cell.filter(pl.col("split") == self.choose_on))
        best = test.filter(pl.col("companion") == ADVERSARY, pl.col("lam").eq(pl.lit(lam, pl.Float64)))
        said: dict[str, Any] = {"n": uniform.height, "undefined": uniform["jsd"].null_count(), "lam": lam}
        said |= _interval("drop", uniform["lost"])
        for name in FAKED:
            said |= _interval(name, best[name])
        return said

    def _best(self, other: pl.DataFrame) -> float | None:
        """λ of the adversary that gets furthest within the tolerance; None if no adversary is."""
        means = other.filter(pl.col("companion") == ADVERSARY).group_by("lam").agg(pl.col("tvd", "jsd").mean())
        same = means.filter(pl.col("tvd") <= self.tolerance, pl.col("jsd").is_not_null())
        return None if same.is_empty() else float(same.sort("jsd", "lam", descending=[True, False])["lam"][0])

    def tables(self, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """How x and y go together over the points, the points, and every adversary."""
        adversaries = rows.filter(pl.col("companion") == ADVERSARY).group_by(
            [*POINT, "split", "lam"], maintain_order=True
        )
        every = adversaries.agg(
            n=pl.len(), tvd=pl.col("tvd").mean(), jsd=pl.col("jsd").mean(), accuracy=pl.col("companion_correct").mean()
        )
        points = averaged(self.summary(rows))
        relations = [{"x": "drop", "y": y} | one._asdict() for y in ("jsd", "lost") for one in _related(points, y)]
        return {
            "relation": pl.DataFrame(relations, schema_overrides=RELATED),
            "points": points,
            "adversaries": every.with_columns(same=pl.col("tvd") <= self.tolerance),
        }


def averaged(summary: pl.DataFrame) -> pl.DataFrame:
    """One point per task and model: means over the seeds that have an adversary; the others are counted."""
    there = pl.col("jsd").is_not_null()
    means = [pl.col(name).filter(there).mean() for name in ("drop", *FAKED)]
    return summary.group_by(MODEL, maintain_order=True).agg(*means, seeds=there.sum(), without=(~there).sum())


def _related(points: pl.DataFrame, y: str) -> list[Related]:
    found = relate(_tensor(points["drop"]), _tensor(points[y]))
    if y != "lost":
        return found
    return [one if one.value is None else one._replace(low=None, high=None, p=None, note=SHARED) for one in found]


def _objective(lam: float) -> str:
    return f"{ADVERSARY}:lam={lam:g}"


def _right(answers: Tensor, gold: Tensor) -> pl.Series:
    """1 where an answer is right, 0 elsewhere."""
    return pl.Series((answers == gold).long().numpy())


def _tensor(column: pl.Series) -> Tensor:
    return torch.from_numpy(column.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy())


def _interval(name: str, column: pl.Series) -> dict[str, float | None]:
    """A column's mean over texts, with its interval."""
    found = bootstrap_mean(_tensor(column))
    return {
        name: or_none(found.mean),
        f"{name}_low": or_none(found.low),
        f"{name}_high": or_none(found.high),
    }
