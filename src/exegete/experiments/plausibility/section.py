"""Plausibility in a report: who marks the words that people marked."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.marking import ALL
from exegete.experiments.common.section import Found, methods, which
from exegete.page.columns import count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "Average precision of a method's scores against the words that people marked as the reason, token F1 and span F1 "
    "of its highest words, each beside what a random ranking scores. People mark what they would use, not what the "
    "model uses: a plausible method need not be faithful."
)


def headline(found: Found) -> Table:
    """Average precision of every method over all texts."""
    kept = found.summary.filter(pl.col("measure") == "auprc", pl.col("texts") == ALL)
    return _table(kept, "Plausibility (average precision)")


def _table(kept: pl.DataFrame, title: str) -> Table:
    order = ["task", "model", "mean"]
    shown = named(kept).sort(order, descending=[False, False, True], nulls_last=True, maintain_order=True)
    shown = methods(shown)
    columns = [*which(shown), text("method"), number("mean"), interval("low", "high"), number("chance"), count("n")]
    if kept["measure"].n_unique() > 1:
        columns.insert(-4, text("measure"))
    if kept["texts"].n_unique() > 1:
        columns.insert(-4, text("texts"))
    return Table(title, shown, "Mean over texts, with what a random ranking scores.", columns)


def sections(found: Found) -> Iterator[Section]:
    """All measures, over all texts and over those that were predicted right."""
    figures = found.figures("Plausibility by method")
    tables = [headline(found), _table(found.summary, "All measures")]
    yield Section("Does a method mark what people marked?", "", [MEANING], tables, figures)
