"""Reliance in a report: points of models, and whether those that need attention are harder to fake."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.reliance import Reliance
from exegete.report.columns import count, interval, number, probability, text
from exegete.report.page import Figure, Section, Table
from exegete.report.sections.contract import Found, named, which

MEANING = (
    "Every trained model is a point. x is the accuracy that it loses when attention is uniform in training and ever "
    "after. y is how good its best adversary is: the divergence of weights that a model trained to predict the same "
    "reaches while predictions differ by a mean TVD of at most {tolerance:g}, and the accuracy that it loses. The best "
    "adversary is chosen on {choose_on} texts. Neely & Schouten's guess is that y falls as x grows."
)
CAUTION = (
    "Models that differ by seed alone are not independent points, and few points say little. Long texts give an "
    "adversary more room, so points of one task say more than points of several."
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
    return Table("Against the accuracy lost with uniform weights, over all points", shown, "", columns)


def sections(found: Found) -> Iterator[Section]:
    """The relation, the points, and every adversary."""
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
        Table("Points", points, caption, columns),
        Table("Every adversary", adversaries.select(pl.exclude("lam"))),
    ]
    charts = asked.figures(found.rows, found.summary)
    figures = [Figure("Need and adversaries", chart) for chart in charts.values()]
    meaning = MEANING.format(tolerance=asked.tolerance, choose_on=asked.choose_on)
    yield Section("Is a model that needs attention harder to fake?", "", [meaning, CAUTION], tables, figures)


def _dial(frame: pl.DataFrame) -> pl.DataFrame:
    """λ as it was written: three decimals would hide it."""
    return frame.with_columns(pl.col("lam").cast(pl.Float64).map_elements("{:g}".format, pl.String).alias("λ"))
