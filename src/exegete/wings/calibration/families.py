"""Families: all kinds of models whose truth is known, hand-set and trained, by one name each."""

from typing import NamedTuple, cast

from exegete.plugins import FAMILIES, Dice, HandSet, KnownGrade, Predictor, Task, draw_family, unknown
from exegete.wings.calibration.training import TRAINED, cue_task
from exegete.wings.calibration.truth import Arithmetic, Passes, Population, population

NAMES = (*FAMILIES, *TRAINED)


class DrawnTruth(NamedTuple):
    """A model, its task, and what is known of it by construction."""

    family: str
    number: int
    known: KnownGrade
    model: Predictor
    task: Task

    def graded(self, draws: int) -> Population:
        """What its attention is worth: of a hand-set model by its numbers, of a trained one by its passes."""
        hand_set = cast(HandSet, self.model)
        told = Passes(self.model) if self.family in TRAINED else Arithmetic.of(hand_set)
        return population(told, self.texts, (self.family, self.number), draws)

    @property
    def texts(self) -> list[list[int]]:
        """Those of the population that no audit sees, as rows."""
        return [self.model.reader.rows(text.words) for text in self.task.split("population")]


def check_family(name: str) -> str:
    """A family by its name."""
    if name not in NAMES:
        raise unknown("family of truths", name, NAMES)
    return name


def draw_truth(name: str, number: int) -> DrawnTruth:
    """One of a family."""
    if name in FAMILIES:
        truth = draw_family(FAMILIES[check_family(name)], number)
        return DrawnTruth(name, number, truth.family.known, truth.model, truth.task)
    family, dice = TRAINED[check_family(name)], Dice("trained", name, number)
    task, language = cue_task(dice)
    return DrawnTruth(name, number, family.known, family.train(task, language, dice), task)
