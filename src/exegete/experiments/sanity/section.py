"""Sanity in a report: what is left of a ranking when the model forgets, and which axioms each method keeps."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, methods, which
from exegete.models.ours.perturbed import PARTS
from exegete.page.columns import count, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "Layers lose what they have learnt, from the decoder down (cascade) or one at a time (independent), and words are "
    "scored again for the same class. τ is Kendall's, between the rankings before and after: a method whose ranking "
    "stays has not looked at those layers. Random scores, which look at nothing, stay at 1: that is the control. "
    "Attention does not depend on the decoder, so it stays when only the decoder forgets."
)
SHIFT = (
    "A constant added to all embeddings and taken off again in the first layer gives the same function: its scores "
    "must be the same too. The axioms are those of Sundararajan et al. (2017), on small functions with known answers; "
    "completeness is the method's own error on the texts."
)


def headline(found: Found) -> Table:
    """τ with the original ranking when everything is forgotten, and when the input is shifted."""
    last = (pl.col("test") == "cascade") & (pl.col("part") == PARTS[-1])
    shown = methods(named(found.summary.filter(last)))
    columns = [*which(shown), text("method"), number("mean", "τ"), interval("low", "high"), count("n")]
    return Table("Rankings of a model that forgot everything, with the original's", shown, "", columns)


def sections(found: Found) -> Iterator[Section]:
    """Randomisation; shift and axioms."""
    summary = found.summary
    figures = found.figures("What is left as layers forget")
    forgot = methods(named(summary.filter(pl.col("test") != "shift")))
    columns = [
        *which(forgot), text("method"), text("test"), text("part"), number("mean", "τ"), interval("low", "high"),
        number("absolute", "τ of |scores|"), share("unchanged"), count("n"),
    ]  # fmt: skip
    yield Section("Do scores depend on what was learnt?", "", [MEANING], [Table("τ", forgot, "", columns)], figures)
    shift = methods(named(summary.filter(pl.col("test") == "shift")))
    moved = Table("After a shift of the input", shift, "", [*columns[: columns.index(text("test"))], *columns[-5:]])
    axioms = Table("Axioms", methods(named(found.table("axioms"))))
    yield Section("Same function, same scores?", "", [SHIFT], [moved, axioms])
