"""Alignment in a report: who links the words of a translation as people do."""

from collections.abc import Iterator, Sequence

import polars as pl

from exegete.experiments.alignment.experiment import CELL, ERROR_RATE, PRECISION, RECALL, SAME
from exegete.experiments.alignment.figure import best_first
from exegete.experiments.common.section import Found, methods, which
from exegete.page.columns import Column, count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "The translator was made to write the reference. Each of its words is linked to the source word that scores "
    "highest for it: by the weights of attention, or by a method that asks how the word depends on the source. A "
    "method whose links are wrong may still be faithful: the model may use other words than people would, and a word "
    "that needs two source words gets one link. So a low error rate speaks for an explanation; a high one alone does "
    "not speak against it."
)
PEOPLE = (
    "Alignment error rate is 1 − (|A∩S| + |A∩P|) / (|A| + |S|) over all sentences, with the links A, those that people "
    "were sure of (S) and those that they found possible (P). Chance links every word to any source word alike. The "
    "difference is from attention, on the same sentences: below 0 the method links better."
)
NOBODY = "Nobody drew the links of these sentences, so only agreement with attention is told, not who is right."


def headline(found: Found) -> Table:
    """Error rates where they are known, else agreement with attention."""
    summary = found.summary
    known = summary.filter(pl.col("measure") == ERROR_RATE)
    return _errors(_ordered(known)) if known.height else _agreement(summary)


def _errors(shown: pl.DataFrame, more: Sequence[Column] = ()) -> Table:
    columns = [
        *_where(shown), text("method"), number("mean", "error rate"), interval("low", "high"), number("chance"),
        number("difference", "from attention"), *more, count("n"),
    ]  # fmt: skip
    caption = "Links of words against those of people; 0 is best. Intervals are over sentences, and seeds if several."
    return Table("Alignment error rate", shown, caption, columns)


def _all_errors(summary: pl.DataFrame, known: pl.DataFrame) -> Table:
    """With the interval of the difference, precision and recall."""
    both = summary.filter(pl.col("measure").is_in([PRECISION, RECALL]))
    wide = both.pivot("measure", index=[*CELL, "method"], values="mean", maintain_order=True)
    shown = _ordered(known.join(wide, on=[*CELL, "method"], how="left", maintain_order="left"))
    paired = interval("difference_low", "difference_high", "95 % of the difference")
    return _errors(shown, [paired, number(PRECISION), number(RECALL)])


def _agreement(summary: pl.DataFrame) -> Table:
    shown = _ordered(summary.filter(pl.col("measure") == SAME))
    columns = [
        *_where(shown), text("method"), number("mean", "linked alike"), interval("low", "high"), number("chance"),
        count("n"), count("undefined"),
    ]  # fmt: skip
    caption = "Share of a sentence's words that are linked to the source word of attention; mean over sentences."
    return Table("Links that attention has too", shown, caption, columns)


def _ordered(kept: pl.DataFrame) -> pl.DataFrame:
    """The best method first within a task and model."""
    place = {method: i for i, method in enumerate(best_first(kept))}
    order = [*CELL, pl.col("method").replace_strict(place, return_dtype=pl.Int64)]
    return methods(named(kept.sort(order, maintain_order=True)))


def _where(shown: pl.DataFrame) -> list[Column]:
    return [*which(shown), *([text("split")] if shown["split"].n_unique() > 1 else [])]


def sections(found: Found) -> Iterator[Section]:
    """Who is right, who agrees, and the words of a few sentences."""
    summary = found.summary
    known = summary.filter(pl.col("measure") == ERROR_RATE)
    figures = found.figures("What each word of a reference rests on", alignment="Links by method")
    said = [MEANING, PEOPLE if known.height else NOBODY, _forced(summary)]
    tables = [*([_all_errors(summary, known)] if known.height else []), _agreement(summary)]
    yield Section("Which source word does a word translate?", "", said, tables, figures)


def _forced(summary: pl.DataFrame) -> str:
    """How much of the references the models would have written."""
    shares = summary.select("task", "model", "right").unique(maintain_order=True)["right"].drop_nulls().to_list()
    if not shares:
        return "No reference has a word."
    low, high = f"{min(shares):.1%}".replace("%", " %"), f"{max(shares):.1%}".replace("%", " %")
    of = low if low == high else f"{low} to {high}"
    return f"After the right words before it, the model itself would have chosen {of} of the references' pieces."
