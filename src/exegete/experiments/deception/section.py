"""Deception in a report: what attention was made to hide, and who finds it all the same."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Found, methods, which
from exegete.experiments.deception.experiment import BASE, PRECISION
from exegete.page.columns import count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "Planted words decide the class of every test text. The same model was trained once more from the same start, with "
    "a penalty λ on the attention that these words get. If it is as accurate, its attention hides the reason of every "
    "prediction: states of other words carry it. Precision at k is the share of the planted words among the k highest "
    "ones, on texts where the model obeys them; chance is that of a random ranking, for the weight that of uniform "
    "attention, for accuracy the most frequent class. A model that obeys in too few texts has lost the words instead "
    "of hiding them: it has not learnt the task, and nothing follows from its precision."
)
WHO = {BASE: "honest", "deceiver": "deceptive"}


def headline(found: Found) -> Table:
    """The weight on planted words and the accuracy of both models; what else there is, is in the report."""
    whole = _weights(found)
    narrow = [column for column in whole.columns if not {"seeds", "undefined"} & set(column.of)]
    return replace(whole, columns=narrow)


def sections(found: Found) -> Iterator[Section]:
    """Weights and accuracy, then methods."""
    figures = found.figures("An honest model and a deceptive one")
    yield Section("What can attention hide?", "", [MEANING], [_weights(found), _methods(found)], figures)


def _weights(found: Found) -> Table:
    kept = _said(found.summary.filter(pl.col("measure") != PRECISION))
    columns = [
        *which(kept), text("who", "model"), text("lam", "λ"), text("measure"), number("mean"), interval("low", "high"),
        number("chance"), count("seeds"), count("n"), count("undefined"),
    ]  # fmt: skip
    caption = "Mass is the attention that planted words get; undefined in texts that have no other words."
    return Table("Attention on planted words, and accuracy", kept, caption, columns)


def _methods(found: Found) -> Table:
    kept = methods(_said(found.summary.filter(pl.col("measure") == PRECISION)))
    columns = [
        *which(kept), text("who", "model"), text("lam", "λ"), text("method"), number("mean", "prec. at k"),
        interval("low", "high"), number("chance"), count("seeds"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("Who finds the planted words", kept, "Undefined: texts in which the model does not obey.", columns)


def _said(frame: pl.DataFrame) -> pl.DataFrame:
    lam = pl.col("lam").map_elements(lambda v: f"{v:g}", pl.String)
    star = pl.when("learnt").then(pl.lit("")).otherwise(pl.lit(", not learnt"))
    return named(frame).with_columns(lam, pl.col("who").replace_strict(WHO) + star)
