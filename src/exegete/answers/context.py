"""Context: what a judge must know beside the rows: how well models predict, what was not asked, what methods cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exegete.experiments.common.test import Goal
from exegete.measures.proportions import clopper_pearson
from exegete.training.skill import Skill

SURE = 0.95  # of the interval of an accuracy
NOTHING = "there is nothing to explain"
GUESSES = f"the model may only guess ({{}}): {NOTHING}"
GUESS = f"the model predicts no better than always naming the most frequent class: {NOTHING}"


class MethodCost(NamedTuple):
    """What a method takes per text."""

    forward: float
    backward: float
    ms: float


class Prediction(NamedTuple):
    """How well a model predicts on the texts of a study, the mean over seeds."""

    accuracy: float | None  # None: the texts have no labels
    majority: float | None  # None: its answers are no classes
    texts: int
    skill: Skill | None = None  # None: a run of before, which says no more than accuracy

    @property
    def guess(self) -> str:
        """Why there is nothing to explain, where it may be no better than a guess; else nothing."""
        if self.skill is not None:
            return GUESSES.format(self.skill.said) if self.skill.is_guess else ""
        return GUESS if self._names_the_frequent else ""

    @property
    def _names_the_frequent(self) -> bool:
        """Whether it may be no better than always naming the most frequent class (Clopper & Pearson's interval)."""
        if self.majority is None or self.texts == 0 or self.accuracy is None:
            return False
        right = round(self.accuracy * self.texts)
        return clopper_pearson(right, self.texts, SURE)[0] <= self.majority


Where = tuple[str, str]  # task and model


@dataclass(frozen=True)
class Context:
    """By task and model."""

    goal: Goal = "faithful"
    predictions: Mapping[Where, Prediction] = field(default_factory=dict)
    unasked: Mapping[Where, Mapping[str, str]] = field(default_factory=dict)  # experiments, and why not
    costs: Mapping[Where, Mapping[str, MethodCost]] = field(default_factory=dict)  # by method


def context_of(cells: Sequence[Mapping[str, Any]], goal: Goal = "faithful") -> Context:
    """From what a run's finished cells tell."""
    where = {(cell["task"], cell["model"]): cell for cell in cells}  # of several seeds the last
    return Context(
        goal,
        {place: _prediction([c for c in cells if (c["task"], c["model"]) == place]) for place in where},
        {place: dict(cell.get("unasked", {})) for place, cell in where.items()},
        {place: _costs(cell) for place, cell in where.items()},
    )


def _prediction(cells: Sequence[Mapping[str, Any]]) -> Prediction:
    scores = [cell["metrics"]["test"]["accuracy"] for cell in cells]
    skills = [Skill.read(cell["skill"]) for cell in cells if cell.get("skill")]
    skill = _mean(skills) if len(skills) == len(cells) else None
    return Prediction(_over(scores), cells[-1]["majority"], cells[-1].get("texts", 0), skill)


def _mean(skills: Sequence[Skill]) -> Skill:
    """Over seeds: of values and of both ends, which is no narrower than the interval of their mean."""
    last, values, lows, highs = skills[-1], *zip(*((s.value, s.low, s.high) for s in skills), strict=True)
    return last._replace(value=_over(values), low=_over(lows), high=_over(highs))


def _over(found: Sequence[float | None]) -> float | None:
    there = [value for value in found if value is not None]
    return sum(there) / len(there) if len(there) == len(found) else None


def _costs(cell: Mapping[str, Any]) -> dict[str, MethodCost]:
    told = [row for rows in cell.get("costs", {}).values() for row in rows]
    return {row["method"]: MethodCost(row["forward"], row["backward"], row["ms"]) for row in told}
