"""Supporting facts in a report: who finds the sentences that answer the question."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.marked_words import CORRECT
from exegete.experiments.common.section import Passage, by_mean, chapter, shown
from exegete.experiments.supporting_facts.experiment import PRECISION
from exegete.report.columns import count, interval, number, text, varying

MEANING = (
    "The sentences that a question needs are known. A method's score of a sentence is that of its highest word, unless "
    "the study says otherwise; precision at k is the share of the supporting sentences among the k highest, k being "
    "their number, beside what a random order scores."
)
EVERY = shown(
    "All measures",
    text("method"), varying("texts"), varying("measure"), varying("ranking"), number("mean"),
    interval("low", "high"), number("chance"), count("n"),
    caption="Mean over texts, with what a random order of sentences scores.", then=by_mean("task", "model"),
)  # fmt: skip
RIGHT = replace(
    EVERY,
    title="Supporting sentences (precision at k, right answers)",
    where=(pl.col("measure") == PRECISION) & (pl.col("texts") == CORRECT) & (pl.col("ranking") == "signed"),
)
headline, sections = chapter(
    RIGHT,
    Passage(
        "Who finds the sentences that answer the question?", [MEANING], [RIGHT, EVERY], "Supporting sentences by method"
    ),
)
