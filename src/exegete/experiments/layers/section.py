"""Layers in a report: accuracy or BLEU with ever more layers permuted, and what that says."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.layers.experiment import BLEU, UNALTERED
from exegete.experiments.layers.figure import GROUPS
from exegete.page.columns import count, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "The weights of every head and every query were shuffled over the tokens that it may look at: in the first layer "
    "of a group, then in the first two, and so on, with all other groups left as they are. The model was trained with "
    "its own weights; a loss shows that it rests on where they lie, not that another could not be trained without."
)
TRANSLATED = (
    "Translations were written greedily, with shuffled weights at every step; a step of the decoder is shuffled over "
    "itself and the steps before it. BLEU is that of all sentences together, and its interval resamples sentences."
)


def headline(found: Found) -> Table:
    """Every group with all of its layers permuted."""
    last = found.summary.filter((pl.col("layers") == pl.col("of")) & (pl.col("group") != UNALTERED))
    return _table(last, "All layers of a group permuted")


def _table(summary: pl.DataFrame, title: str) -> Table:
    """One measure as it is written, several side by side as plain numbers."""
    shown = named(summary).with_columns(pl.col("group").replace(GROUPS | {UNALTERED: "none"}))
    written = share if set(summary["measure"]) == {"accuracy"} else number
    measure = [text("measure")] if summary["measure"].n_unique() > 1 else []
    name = summary["measure"][0] if summary.height and not measure else "mean"
    chance = [written("majority")] if summary["majority"].is_not_null().any() else []
    columns = [
        *which(shown), *measure, text("group"), count("layers", "permuted"), written("unaltered", "as it is"),
        written("mean", name), interval("low", "high"), number("change"),
        interval("change_low", "change_high", "95 % of the change"), *chance, count("n"),
    ]  # fmt: skip
    caption = (
        "Layers permuted from the first on; the change from the model as it is is paired by text, its reference 0."
    )
    return Table(title, shown, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """The figure and its numbers."""
    summary = found.summary
    figures = found.figures("What is left with ever more layers permuted")
    said = [MEANING, *([TRANSLATED] if BLEU in set(summary["measure"]) else [])]
    parts = summary.partition_by("measure", maintain_order=True)
    tables = [_table(part, f"{part['measure'][0]} with ever more layers permuted") for part in parts]
    yield Section("Does it matter where each layer looks?", "", said, tables, figures)
