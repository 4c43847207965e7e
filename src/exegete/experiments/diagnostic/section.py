"""The diagnostic in a report: a model of single words under weights from elsewhere, and what the imposed ones add."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.diagnostic.experiment import LEVEL
from exegete.experiments.diagnostic.figure import LABELS, MEASURES
from exegete.page.columns import count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "A model that sees single words, without context, was trained with its own attention, with uniform weights, with "
    "the weights of the model in question, imposed text by text in training and at test, and with those of an "
    "adversary that predicts as the model does with other weights. F1 is that of the second class, or the mean over "
    "the classes that texts have where there are more than two."
)
SOUGHT = (
    "Wiegreffe & Pinter look for this pattern: the model's weights help at least as much as own ones, and those of the "
    "adversary help less. Then attention says something about the words that another model can use; that it is how the "
    "first one decides does not follow."
)
FAR = (
    "JSD of the weights, undefined for one word; TVD of the predictions, where rows have it: an adversary predicts as "
    "the model does only if its TVD is near 0."
)


def headline(found: Found) -> Table:
    """What imposed weights add, in accuracy."""
    return _differences(found.summary.filter(pl.col("measure") == "accuracy"))


def _differences(summary: pl.DataFrame) -> Table:
    """Imposed weights against the others, each with what its interval says."""
    kept = named(summary.filter(pl.col("against") != LEVEL))
    said = (
        pl.when(pl.col("low") > 0).then(pl.lit("better"))
        .when(pl.col("high") < 0).then(pl.lit("worse"))
        .otherwise(pl.lit("cannot tell"))
    )  # fmt: skip
    shown = kept.with_columns(
        pl.col("measure").replace_strict(MEASURES), pl.col("against").replace_strict(LABELS), imposed=said
    )
    columns = [
        *which(shown), text("measure"), text("against"), number("mean", "difference"), interval("low", "high"),
        text("imposed"), count("seeds"), count("n"),
    ]  # fmt: skip
    return Table("What the model's weights add", shown, "Paired by text; the reference is 0.", columns)


def sections(found: Found) -> Iterator[Section]:
    """Levels, differences, and how far the weights are from the model's own."""
    summary = found.summary
    levels = named(summary.filter(pl.col("against") == LEVEL)).with_columns(
        pl.col("measure").replace_strict(MEASURES), pl.col("weights").replace_strict(LABELS)
    )
    columns = [
        *which(levels), text("measure"), text("weights"), number("mean"), interval("low", "high"),
        number("reference", "majority"), count("seeds"), count("n"),
    ]  # fmt: skip
    far = named(found.table("weights")).with_columns(pl.col("weights").replace_strict(LABELS))
    tables = [
        _differences(summary),
        Table("Under all weights", levels, "", columns),
        Table("How far the weights are from the model's", far, FAR),
    ]
    figures = found.figures("Accuracy and F1 by weights")
    yield Section("Do the weights help a model of single words?", "", [MEANING, SOUGHT], tables, figures)
