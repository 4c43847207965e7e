"""Readings in a report: every way of reading attention, beside what knows nothing of attention."""

import polars as pl

from exegete.experiments.common.margins import Margins
from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.mediation.experiment import TEST
from exegete.experiments.readings.candidates import SAID
from exegete.experiments.readings.experiment import NUMBERS
from exegete.report.columns import count, number, text, wide

MEANING = (
    "People read the attention of a transformer in many ways. Each was asked what is asked of the readout: whether it "
    "orders words by what the prediction loses without them (Γ), and whether words act through the edges that it looks "
    "at, which were cut one word at a time (M). A reading that joins heads or layers can owe its order to some that "
    "nobody reads and its M to others: Γ of what is read leaves out all heads whose weights can be made flat together "
    "without changing the prediction."
)
CHOSEN = (
    "Which layer and which head are asked for M, which heads are unread, the direction of positions and the effects of "
    "word types were found on other texts. Baselines know nothing of attention: a reading that does no better than the "
    "mean effect of the same word on other texts tells little of this text."
)
KEYS = ("task", "model", "reading", "kind", "site", "head", "query", "left_out")


def of_readings(summary: pl.DataFrame) -> pl.DataFrame:
    """A line per reading that is asked for M, and per baseline: means over specifications of the texts that judge."""
    kept = summary.filter(pl.col("on") == TEST, pl.col("reads").is_not_null() | (pl.col("kind") == "baseline"))
    found = kept.group_by(KEYS, maintain_order=True).agg(
        pl.col(*NUMBERS).mean(), pl.col("ranks").min().alias("least"), pl.col("n").max()
    )
    return found.with_columns(
        name=pl.when(pl.col("kind") == "baseline").then("reading").otherwise(pl.col("kind").replace(SAID))
    )


def of_others(summary: pl.DataFrame) -> pl.DataFrame:
    """Single layers and heads: the number of them, and the range of their Γ."""
    kept = summary.filter(pl.col("on") == TEST, pl.col("kind").is_in(["layer", "head"]))
    means = kept.group_by("task", "model", "kind", "reading", maintain_order=True).agg(pl.col("ranks").mean())
    return means.group_by("task", "model", "kind", maintain_order=True).agg(
        pl.len().alias("readings"), pl.col("ranks").min().alias("least"), pl.col("ranks").median().alias("median"),
        pl.col("ranks").max().alias("most"),
    )  # fmt: skip


def readings_caption(margins: Margins) -> str:
    """The caption of readings."""
    where = f"both Γ > {margins['ranks']:g}, M > {margins['reads']:g}"
    return f"Means over specifications, on texts that chose nothing. Chance: 0. May be read: {where}."


READINGS = shown(
    "Readings",
    text("name", "reading"), text("site"), text("head"), *wide(text("query", "read from")), number("ranks", "Γ"),
    number("carried", "Γ of what is read"), number("reads", "M"), count("n"),
    *wide(number("least", "least Γ"), count("left_out", "heads left out")),
    caption=readings_caption, first=of_readings,
)  # fmt: skip
OTHERS = shown(
    "Single layers and heads", text("kind"), count("readings"), number("least"), number("median"), number("most"),
    caption="Γ of every layer but the last, and of every head.", first=of_others,
)  # fmt: skip
headline, sections = chapter(
    READINGS,
    Passage("In which way may its attention be read?", [MEANING, CHOSEN], [READINGS, OTHERS], "Γ and M of readings"),
)
