"""Known answers in a report: who finds the planted words, what the models have learnt, and the toys."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.known_answer import PRECISION, KnownAnswer
from exegete.report.columns import count, interval, number, share, text
from exegete.report.page import Figure, Section, Table
from exegete.report.sections.contract import Found, methods, named, which

MEANING = (
    "Made-up words were planted in the training texts so that they decide the class, and every test text says another "
    "class in its own words. Where the model follows the planted words, they are the reason, whatever a method says. "
    "Precision at k is the share of the planted words among the k highest ones, k being their number; chance is that "
    "of a random ranking."
)
TOYS = (
    "Small models with weights set by hand, whose important words are known: precision at k of these words, and "
    "whether signs are right."
)


def headline(found: Found) -> Table:
    """Precision at k of every method."""
    kept = found.summary.filter(pl.col("measure") == PRECISION, pl.col("ranking") == "signed")
    order = ["task", "model", "mean"]
    shown = named(kept).sort(order, descending=[False, False, True], nulls_last=True, maintain_order=True)
    shown = methods(shown)
    columns = [
        *which(shown), text("method"), number("mean", "prec. at k"), interval("low", "high"), number("chance"),
        share("obedience"), count("n"),
    ]  # fmt: skip
    caption = "On texts where the model obeys the planted words; obedience is the share of such texts."
    return Table("Planted words", shown, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """Planted words, then toys."""
    asked: KnownAnswer = found.experiment
    charts = asked.figures(found.rows, found.summary)
    figures = [Figure("Precision at k by method", chart) for chart in charts.values()]
    learnt = named(found.table("obedience"))
    tables = [headline(found), Table("What the models have learnt", learnt)]
    yield Section("Who finds the words that decide?", "", [MEANING], tables, figures)
    yield Section("Toys whose answer is known by hand", "", [TOYS], [Table("Toys", found.table("toys"))])
