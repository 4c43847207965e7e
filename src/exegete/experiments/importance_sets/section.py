"""Importance sets in a report: how much must go before the decision flips, in whose order."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.importance_sets.figure import LABELS
from exegete.page.columns import count, interval, number, probability, share, spread, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

TITLE = "Fraction of keys removed before the first flip"
MEANING = (
    "Weights of the last attention are set to 0 one after the other, the rest renormalised (in a model with a null "
    "key, that key takes the weight instead), until the decision flips. A ranking that finds what the decision hangs "
    "on needs a small fraction of the keys; random orders are the level to beat (the mean over several). A text that "
    "never flips, not even without any weight, is of the class that the bias prefers: it counts as 1 here. The paper "
    "leaves such texts out, so that every ranking is measured on other texts: that is the second table. Emptied: texts "
    "that flip only when no weight is left, where the bias alone decides; their fraction says nothing of the ranking."
)


def headline(found: Found) -> Table:
    """The fraction by scheme, texts that never flip at 1."""
    shown = _spoken(named(found.summary), "scheme")
    columns = [
        *which(shown), text("scheme", "order"), number("mean", "fraction"), interval("low", "high"), count("n"),
        count("excluded", "never flips"),
    ]  # fmt: skip
    return Table(TITLE, shown, "Texts that never flip count as 1.", columns)


def _censored(found: Found) -> Table:
    shown = _spoken(named(found.summary), "scheme")
    columns = [
        *which(shown), text("scheme", "order"), number("mean", "mean fraction"), interval("low", "high"),
        number("median"), interval("median_low", "median_high"), number("mass", "attention gone"),
        number("chance", "random"), count("n"), count("excluded", "never flips"), count("emptied"),
        count("undefined"),
    ]  # fmt: skip
    return Table(TITLE, shown, "Texts that never flip count as 1. Undefined: texts of one key.", columns)


def _spoken(frame: pl.DataFrame, *fields: str) -> pl.DataFrame:
    return frame.with_columns(pl.col(field).replace_strict(LABELS) for field in fields)


def sections(found: Found) -> Iterator[Section]:
    """Censored, as published, in pairs, and boxes."""
    figures = found.figures("Fraction removed by order")
    tables = [_censored(found), _published(found), _paired(found)]
    yield Section("How much must go before the decision flips?", "", [MEANING], tables, figures)


def _published(found: Found) -> Table:
    """With the paper's exclusion."""
    shown = _spoken(named(found.table("serrano_smith")), "scheme")
    columns = [
        *which(shown), text("scheme", "order"), spread("fraction", "fraction_std", "fraction, mean ± std"),
        spread("mass", "mass_std", "attention gone, mean ± std"), count("n"), count("excluded"),
    ]  # fmt: skip
    caption = "Only texts that flip under each order; of random orders the first."
    return Table("The same as Serrano & Smith report it", shown, caption, columns)


def _paired(found: Found) -> Table:
    shown = _spoken(named(found.table("paired")), "first", "second")
    columns = [
        *which(shown), text("first"), text("second"), text("texts"), number("difference"), interval("low", "high"),
        share("fewer", "first needs fewer"), share("more", "first needs more"), probability("p", "sign test p"),
        count("n"),
    ]  # fmt: skip
    caption = (
        "Fraction of the first less that of the second, on the same texts: all, or those that both flip. Of several "
        "seeds p is the largest."
    )
    return Table("Orders in pairs", shown, caption, columns)
