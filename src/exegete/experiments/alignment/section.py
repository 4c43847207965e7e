"""Alignment in a report: who links the words of a translation as people do."""

import polars as pl

from exegete.experiments.alignment.experiment import CELL, ERROR_RATE, PRECISION, RECALL, SAME
from exegete.experiments.alignment.figure import best_first
from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.report.columns import count, interval, number, text, varying, wide
from exegete.report.section import Table

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
KNOWN = pl.col("measure") == ERROR_RATE


def _ordered(kept: pl.DataFrame) -> pl.DataFrame:
    """The best method first within a task and model."""
    place = {method: i for i, method in enumerate(best_first(kept))}
    order = [*CELL, pl.col("method").replace_strict(place, return_dtype=pl.Int64)]
    return kept.sort(order, maintain_order=True)


ERRORS = shown(
    "Alignment error rate",
    varying("split"), text("method"), number("mean", "error rate"), interval("low", "high"), number("chance"),
    number("difference", "from attention"),
    *wide(interval("difference_low", "difference_high", "95 % of the difference"), number(PRECISION), number(RECALL)),
    count("n"),
    caption="Links of words against those of people; 0 is best. Intervals are over sentences, and seeds if several.",
    first=_ordered,
)  # fmt: skip
AGREEMENT = shown(
    "Links that attention has too",
    varying("split"), text("method"), number("mean", "linked alike"), interval("low", "high"), number("chance"),
    count("n"), count("undefined"),
    caption="Share of a sentence's words that are linked to the source word of attention; mean over sentences.",
    where=pl.col("measure") == SAME, first=_ordered,
)  # fmt: skip


def _errors(found: QuestionResult) -> Table | None:
    """Error rates with precision and recall, where they are known."""
    known = found.summary.filter(KNOWN)
    both = found.summary.filter(pl.col("measure").is_in([PRECISION, RECALL]))
    means = both.pivot("measure", index=[*CELL, "method"], values="mean", maintain_order=True)
    joined = known.join(means, on=[*CELL, "method"], how="left", maintain_order="left")
    return None if known.is_empty() else ERRORS.on(joined)


def _said(found: QuestionResult) -> list[str]:
    return [MEANING, NOBODY if found.summary.filter(KNOWN).is_empty() else PEOPLE, _forced(found.summary)]


def _forced(summary: pl.DataFrame) -> str:
    """How much of the references the models would have written."""
    shares = summary.select("task", "model", "right").unique(maintain_order=True)["right"].drop_nulls().to_list()
    if not shares:
        return "No reference has a word."
    low, high = f"{min(shares):.1%}".replace("%", " %"), f"{max(shares):.1%}".replace("%", " %")
    of = low if low == high else f"{low} to {high}"
    return f"After the right words before it, the model itself would have chosen {of} of the references' pieces."


headline, sections = chapter(
    lambda found: _errors(found) or AGREEMENT(found),
    Passage(
        "Which source word does a word translate?",
        _said,
        [_errors, AGREEMENT],
        {"alignment": "Links by method", "": "What each word of a reference rests on"},
    ),
)
