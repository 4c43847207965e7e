"""The multiverse in a report: the range of all specifications, the share of every choice, the curves."""

from collections.abc import Callable

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.experiments.multiverse.figure import AMONG, CHOICES, SCALES, coefficient_label
from exegete.report.columns import count, interval, number, share, text
from exegete.report.labels import importance_label

MEANING = (
    "Attention is compared with every size of the gradient (with attention held fixed or not; of the logit, the "
    "probability or the loss) and with leave-one-out, by every coefficient, for every seed. Each combination is a "
    "specification that a paper could have reported. Scores are taken by size: attention has no sign. A mean is read "
    "against the level of unrelated rankings, which is 0 for τ and is not for top-k coefficients."
)
DIVIDED = (
    "The means of all specifications and seeds spread; a choice's share is the part of that variance that its levels "
    "explain by themselves, and the rest is explained only by choices in combination. As printed, coefficients with "
    "another chance level differ by that alone; above chance, (mean − chance) / (1 − chance), they can be compared. "
    "Shares are about the levels that were asked for: another grid has other shares. Intervals are over texts."
)


def _specification(written: str) -> str:
    importance, coefficient = written.split(" · ")
    return f"{importance_label(importance)}, {coefficient_label(coefficient)}"


def _said(**labels: Callable[[str], str]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """The contents of columns by functions that say them."""
    return lambda frame: frame.with_columns(
        pl.col(name).map_elements(label, pl.String) for name, label in labels.items()
    )


RANGE = shown(
    "Agreement under every choice",
    number("lowest"), number("median"), number("highest"), count("above_chance"), count("below_chance"),
    count("specifications"),
    caption="Means of all specifications; above and below chance: how many have a 95 % interval that lies beyond the "
    "level of unrelated rankings.", of="range",
)  # fmt: skip
ENDS = shown(
    "The ends of the curve",
    number("lowest"), text("lowest_is", "with"), number("highest"), text("highest_is", "with"),
    caption="The specifications with the lowest and the highest mean.", of="range",
    then=_said(lowest_is=_specification, highest_is=_specification),
)  # fmt: skip
SHARES = shown(
    "What moves the result",
    text("among"), text("scale"), text("choice"), count("levels"), share("share"), interval("low", "high"),
    count("specifications", "specifications × seeds"), count("n", "texts"),
    caption="Shares of the variance of the means.", of="shares", where=pl.col("among").is_in(list(AMONG)),
    words={"choice": CHOICES, "among": AMONG, "scale": SCALES},
)  # fmt: skip
MEANS = shown(
    "Every specification",
    text("importance"), text("coefficient"), number("mean"), interval("low", "high"), number("chance"),
    number("above", "above chance"), count("seeds"), count("n"), count("undefined"),
    caption="Means over texts and seeds.",
    first=lambda frame: frame.sort("task", "model", "mean", nulls_last=True, maintain_order=True),
    then=_said(importance=importance_label, coefficient=coefficient_label),
)  # fmt: skip


def _curves(found: QuestionResult) -> dict[str, str]:
    tasks = found.summary["task"].unique(maintain_order=True)
    return {f"curve_{i}" if i > 1 else "curve": f"Specification curves: {task}" for i, task in enumerate(tasks, 1)}


headline, sections = chapter(
    RANGE,
    Passage("What if other choices had been made?", [MEANING], [RANGE, ENDS], _curves),
    Passage("Which choice moves the result?", [DIVIDED], [SHARES, MEANS], {"shares": "Shares of variance by choice"}),
)
