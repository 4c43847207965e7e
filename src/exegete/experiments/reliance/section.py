"""Reliance in a report: points of models, and whether those that need attention are harder to fake."""

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, keep_decimals, shown
from exegete.report.columns import count, interval, number, probability, text

MEANING = (
    "Every model on a task is a point, the mean over its seeds (the figure and the second table show every training). "
    "x is the accuracy that it loses when attention is uniform in training and ever after. y is how good its best "
    "adversary is: the divergence of weights that a model trained to predict the same reaches while predictions differ "
    "by a mean TVD of at most {tolerance:g}, and the accuracy that it loses. The best adversary is chosen on "
    "{choose_on} texts. Neely & Schouten's guess is that y falls as x grows."
)
CAUTION = (
    "Few points say little. Long texts give an adversary more room, so points of one task say more than points of "
    "several. The accuracy that an adversary loses has the accuracy of the model itself in it, and so has x, on the "
    "same texts and of the same training: a model that was lucky raises both. So these two go together whatever is "
    "true, and their coefficient has neither interval nor p."
)
NAMES = {"drop": "accuracy lost with uniform weights", "jsd": "JSD of the best adversary", "lost": "accuracy it loses"}
STATISTICS = {"spearman": "Spearman ρ", "kendall": "Kendall τ-b"}


def _numbers(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Where no model has an adversary, a column is all null, and text as read."""
    return frame.with_columns(pl.col(*names).cast(pl.Float64))


def _meaning(found: QuestionResult) -> list[str]:
    asked = found.experiment
    return [MEANING.format(tolerance=asked.tolerance, choose_on=asked.choose_on), CAUTION]


RELATION = shown(
    "Against the accuracy lost with uniform weights, over all points",
    text("y"), text("statistic"), number("value"), interval("low", "high"), probability("p"), count("n", "points"),
    count("undefined"), text("note"),
    caption="A point is a task and model; p is over permutations of the points.", of="relation",
    words={"x": NAMES, "y": NAMES, "statistic": STATISTICS},
    then=lambda frame: _numbers(frame, "value", "low", "high", "p").with_columns(pl.col("note").fill_null("")),
)  # fmt: skip
TRAININGS = shown(
    "Every training",
    count("seed"), number("drop", "lost with uniform"), interval("drop_low", "drop_high", "its interval"),
    text("λ"), number("jsd", "JSD"), interval("jsd_low", "jsd_high", "its interval"), number("tvd", "TVD"),
    number("lost", "lost by adversary"), interval("lost_low", "lost_high", "its interval"), count("n"),
    count("undefined"),
    caption="Intervals are at 95 %, over texts. A dash: no adversary predicts the same.",
    then=lambda frame: keep_decimals(frame.with_columns(λ="lam"), "λ"),
)  # fmt: skip
POINTS = shown(
    "Points",
    number("drop", "lost with uniform"), number("jsd", "JSD"), number("tvd", "TVD"),
    number("lost", "lost by adversary"), count("seeds"), count("without", "seeds without an adversary"),
    caption="Means over the seeds that have an adversary that predicts the same.", of="points",
    then=lambda frame: _numbers(frame, "drop", "jsd", "tvd", "lost"),
)  # fmt: skip
ADVERSARIES = shown(
    "Every adversary",
    of="adversaries", then=lambda frame: keep_decimals(frame.with_columns(λ="lam"), "λ").select(pl.exclude("lam")),
)  # fmt: skip
headline, sections = chapter(
    RELATION,
    Passage(
        "Is a model that needs attention harder to fake?",
        _meaning,
        [RELATION, TRAININGS, POINTS, ADVERSARIES],
        "Need and adversaries",
    ),
)
