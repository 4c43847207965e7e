"""Layers in a report: accuracy or BLEU with ever more layers altered, and what that says."""

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.experiments.layers.experiment import ACCURACY, BLEU, UNALTERED
from exegete.experiments.layers.figure import GROUPS, HOW, ORDERS
from exegete.report.columns import count, interval, number, share, text, varying
from exegete.report.section import Table

MEANING = (
    "The weights of every head and every query were shuffled over the tokens that it may look at, or altered as the "
    "table says: in the first layer of a group, then in the first two, and so on, or from the last one down, with all "
    "other groups left as they are. The model was trained with "
    "its own weights; a loss shows that it rests on where they lie, not that another could not be trained without."
)
TRANSLATED = (
    "Translations were written greedily, with shuffled weights at every step; a step of the decoder is shuffled over "
    "itself and the steps before it. BLEU is that of all sentences together, and its interval resamples sentences."
)


def _table(summary: pl.DataFrame, title: str) -> Table:
    """One measure as it is written, several side by side as plain numbers."""
    measures = summary["measure"].unique(maintain_order=True).to_list()
    written = share if measures == ["accuracy"] else number
    name = measures[0] if len(measures) == 1 else "mean"
    chance = [written("majority")] if summary["majority"].is_not_null().any() else []
    table = shown(
        title,
        varying("measure"), varying("intervention", "weights"), varying("order"), text("group"),
        count("layers", "altered"), written("unaltered", "as it is"),
        written("mean", name), interval("low", "high"), number("change"),
        interval("change_low", "change_high", "95 % of the change"), *chance, count("n"),
        caption="The change from the model as it is is paired by text, its reference 0.",
        words={"group": GROUPS | {UNALTERED: "none"}, "intervention": HOW, "order": ORDERS},
    )  # fmt: skip
    return table.on(summary)


def _last(found: QuestionResult) -> Table:
    """Every group with all of its layers altered."""
    whole = pl.col("layers") == pl.col("of"), pl.col("order") != "alone"
    last = found.summary.filter(*whole, pl.col("group") != UNALTERED)
    return _table(last, "All layers of a group altered")


def _every(found: QuestionResult, measure: str) -> Table | None:
    kept = found.summary.filter(pl.col("measure") == measure)
    return None if kept.is_empty() else _table(kept, f"{measure} with ever more layers altered")


def _said(found: QuestionResult) -> list[str]:
    return [MEANING, *([TRANSLATED] if BLEU in set(found.summary["measure"]) else [])]


headline, sections = chapter(
    _last,
    Passage(
        "Does it matter where each layer looks?",
        _said,
        [lambda found: _every(found, ACCURACY), lambda found: _every(found, BLEU)],
        "What is left with ever more layers altered",
    ),
)
