"""Plausibility in a report: who marks the words that people marked."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.marked_words import ALL
from exegete.experiments.common.section import Passage, by_mean, chapter, shown
from exegete.report.columns import count, interval, number, text, varying

MEANING = (
    "Average precision of a method's scores against the words that people marked as the reason, token F1 and span F1 "
    "of its highest words, each beside what a random ranking scores. People mark what they would use, not what the "
    "model uses: a plausible method need not be faithful."
)
EVERY = shown(
    "All measures",
    text("method"), varying("measure"), varying("texts"), number("mean"), interval("low", "high"),
    number("chance"), count("n"),
    caption="Mean over texts, with what a random ranking scores.", then=by_mean("task", "model"),
)  # fmt: skip
PRECISION = replace(
    EVERY, title="Plausibility (average precision)", where=(pl.col("measure") == "auprc") & (pl.col("texts") == ALL)
)
headline, sections = chapter(
    PRECISION,
    Passage("Does a method mark what people marked?", [MEANING], [PRECISION, EVERY], "Plausibility by method"),
)
