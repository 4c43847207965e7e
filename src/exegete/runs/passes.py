"""Passes: how often the words of a text are run through a model for what is asked of it; what `estimate` multiplies.

A pass is a plain prediction. What is dearer than that counts as several: numbers are those that were measured on
film reviews, of our own models and of one of Hugging Face (MiniLM).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from exegete.base.names import parse
from exegete.experiments.common.contract import Experiment

BY_ERASING = ("occlusion", "leave_one_out", "replacement", "blocking")  # one per word
FULL = 1.5  # texts without a word against plain ones: they are written down, and passes are not all full
FEW = 5


class Costs(NamedTuple):
    """What is done with models of one kind, in passes of a text."""

    step: float  # a training step
    erased: float  # a text with many of its words gone: it is written down, and shorter
    score: float  # an importance that is not named
    scores: Mapping[str, float]
    rows: Mapping[str, float]  # of an experiment, its scores not counted; others: FEW


PASSES = {"lrp": 130, "integrated_gradients": 80, "deeplift": 60, "smoothgrad": 100, "lime": 200, "kernel_shap": 200}
ROWS = {"adversary_search": 200, "known_answer": 15, "plausibility": 15, "heads": 180, "knockout": 75}
OURS = Costs(5.0, FULL, 3 * FEW, MappingProxyType(PASSES), MappingProxyType(ROWS))
# Passes are dear, what surrounds them is not, and other weights at a readout cost next to nothing.
OF_HUB = Costs(
    2.2,
    0.6,
    2.5,
    MappingProxyType(PASSES | {"lrp": 3, "integrated_gradients": 90}),
    MappingProxyType(ROWS | {"adversary_search": 95, "importance_sets": 9, "agreement": 1, "heads": 70}),
)


class SplitQuestion(NamedTuple):
    """An experiment that is asked about a split."""

    name: str
    built: Experiment
    split: str
    methods: tuple[str, ...]  # whose scores it is the first to need
    length: float = 0.0  # of a text, in words


def count_passes(asked: SplitQuestion, costs: Costs) -> float:
    """Of one text, its scores included."""
    scores = sum(_scoring(method, asked.length, costs) for method in asked.methods)
    counted = _COUNTED.get(asked.name)
    return scores + (costs.rows.get(asked.name, FEW) if counted is None else counted(asked, costs))


def _scoring(method: str, length: float, costs: Costs) -> float:
    spec = parse(method)
    if spec.name in BY_ERASING:
        return FULL * length
    return float(spec.settings.get("samples", costs.scores.get(spec.name, costs.score)))


def _faithfulness(asked: SplitQuestion, costs: Costs) -> float:
    """Fractions, kept and removed, and flips, which come early."""
    every = len(asked.built.importances) * len(getattr(asked.built, "removals", ("delete",)))
    return costs.erased * every * (10 + 0.6 * min(asked.length, 50))


def _mediation(asked: SplitQuestion, costs: Costs) -> float:
    """Every word: to choose, alone; else in so many halves, too, deleted (from half a text) and replaced."""
    del costs
    words = FULL * min(asked.length, getattr(asked.built, "words", asked.length))
    chosen = asked.split == getattr(asked.built, "choose_on", "")
    return words if chosen else words * 2.5 * getattr(asked.built, "draws", 1)


_COUNTED: dict[str, Callable[[SplitQuestion, Costs], float]] = {"faithfulness": _faithfulness, "mediation": _mediation}
