"""Supporting facts in a report: who finds the sentences that answer the question."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.marking import CORRECT
from exegete.experiments.common.section import Found, methods, which
from exegete.experiments.supporting_facts.experiment import PRECISION
from exegete.page.columns import count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "The sentences that a question needs are known. A method's score of a sentence is that of its highest word, unless "
    "the study says otherwise; precision at k is the share of the supporting sentences among the k highest, k being "
    "their number, beside what a random order scores."
)


def headline(found: Found) -> Table:
    """Precision at k of every method where the answer is right."""
    kept = found.summary.filter(
        pl.col("measure") == PRECISION, pl.col("texts") == CORRECT, pl.col("ranking") == "signed"
    )
    return _table(kept, "Supporting sentences (precision at k, right answers)")


def _table(kept: pl.DataFrame, title: str) -> Table:
    order = ["task", "model", "mean"]
    shown = named(kept).sort(order, descending=[False, False, True], nulls_last=True, maintain_order=True)
    columns = [*which(shown), text("method"), number("mean"), interval("low", "high"), number("chance"), count("n")]
    for name in ("texts", "measure", "ranking"):
        if kept[name].n_unique() > 1:
            columns.insert(-4, text(name))
    return Table(title, methods(shown), "Mean over texts, with what a random order of sentences scores.", columns)


def sections(found: Found) -> Iterator[Section]:
    """All measures, over all texts and over those that were answered right."""
    figures = found.figures("Supporting sentences by method")
    tables = [headline(found), _table(found.summary, "All measures")]
    yield Section("Who finds the sentences that answer the question?", "", [MEANING], tables, figures)
