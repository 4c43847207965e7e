"""Sanity in a report: what is left of a ranking when the model forgets, and which axioms each method keeps."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, chapter, methods, shown
from exegete.models.ours.perturbations import PARTS
from exegete.report.columns import count, interval, number, share, text, wide

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
NUMBERS = (
    number("mean", "τ"), interval("low", "high"), *wide(number("absolute", "τ of |scores|"), share("unchanged")),
    count("n"),
)  # fmt: skip
FORGOT = shown("τ", text("method"), *wide(text("test"), text("part")), *NUMBERS, where=pl.col("test") != "shift")
MOVED = shown("After a shift of the input", text("method"), *NUMBERS, where=pl.col("test") == "shift")
headline, sections = chapter(
    replace(
        FORGOT,
        title="Rankings of a model that forgot everything, with the original's",
        where=(pl.col("test") == "cascade") & (pl.col("part") == PARTS[-1]),
    ),
    Passage("Do scores depend on what was learnt?", [MEANING], [FORGOT], "What is left as layers forget"),
    Passage("Same function, same scores?", [SHIFT], [MOVED, shown("Axioms", of="axioms", then=methods)]),
)
