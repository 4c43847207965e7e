"""Reliance in a report: points of models, and whether those that need attention are harder to fake."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.reliance.experiment import Reliance
from exegete.page.columns import count, interval, number, probability, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

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


def headline(found: Found) -> Table:
    """Whether x and y go together."""
    return _relation(found)


def _relation(found: Found) -> Table:
    table = found.table("relation")
    numbers = [pl.col(name).cast(pl.Float64) for name in ("value", "low", "high", "p")]
    shown = table.with_columns(
        *numbers, pl.col("x", "y").replace_strict(NAMES), pl.col("statistic").replace_strict(STATISTICS),
        pl.col("note").fill_null(""),
    )  # fmt: skip
    columns = [
        text("y"), text("statistic"), number("value"), interval("low", "high"), probability("p"), count("n", "points"),
        count("undefined"), text("note"),
    ]  # fmt: skip
    caption = "A point is a task and model; p is over permutations of the points."
    return Table("Against the accuracy lost with uniform weights, over all points", shown, caption, columns)


def _means(found: Found) -> Table:
    # Where no model has an adversary, a column is all null, and text as read.
    means = found.table("points").with_columns(pl.col("drop", "jsd", "tvd", "lost").cast(pl.Float64))
    shown = named(means)
    columns = [
        *which(shown), number("drop", "lost with uniform"), number("jsd", "JSD"), number("tvd", "TVD"),
        number("lost", "lost by adversary"), count("seeds"), count("without", "seeds without an adversary"),
    ]  # fmt: skip
    return Table("Points", shown, "Means over the seeds that have an adversary that predicts the same.", columns)


def sections(found: Found) -> Iterator[Section]:
    """The relation, every training, the points, and every adversary."""
    asked: Reliance = found.experiment
    points, adversaries = (_dial(named(frame)) for frame in (found.summary, found.table("adversaries")))
    columns = [
        *which(points), count("seed"), number("drop", "lost with uniform"),
        interval("drop_low", "drop_high", "its interval"), text("λ"), number("jsd", "JSD"),
        interval("jsd_low", "jsd_high", "its interval"), number("tvd", "TVD"), number("lost", "lost by adversary"),
        interval("lost_low", "lost_high", "its interval"), count("n"), count("undefined"),
    ]  # fmt: skip
    caption = "Intervals are at 95 %, over texts. A dash: no adversary predicts the same."
    tables = [
        _relation(found),
        Table("Every training", points, caption, columns),
        _means(found),
        Table("Every adversary", adversaries.select(pl.exclude("lam"))),
    ]
    figures = found.figures("Need and adversaries")
    meaning = MEANING.format(tolerance=asked.tolerance, choose_on=asked.choose_on)
    yield Section("Is a model that needs attention harder to fake?", "", [meaning, CAUTION], tables, figures)


def _dial(frame: pl.DataFrame) -> pl.DataFrame:
    """λ as it was written: three decimals would hide it."""
    return frame.with_columns(pl.col("lam").cast(pl.Float64).map_elements("{:g}".format, pl.String).alias("λ"))
