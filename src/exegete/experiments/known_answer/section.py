"""Known answers in a report: who finds the planted words, what the models have learnt, and the toys."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, methods, which
from exegete.experiments.known_answer.experiment import NEEDED, OBEYS, PRECISION
from exegete.page.columns import count, decimal, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "Made-up words were planted in the training texts so that they decide the class, and every test text says another "
    "class in its own words. Where the model follows the planted words they are the reason, and where deleting any one "
    "of them changes the prediction, all are (a choice of texts that favours methods which delete words). "
    "Precision at k is the share of the planted words among the k highest ones, k being their number; chance is that "
    "of a random ranking."
)
TOYS = (
    "Small models with weights set by hand, whose important words are known: precision at k of these words, and "
    "whether signs are right."
)


def headline(found: Found) -> Table:
    """Precision at k of every method: with its interval for one shortcut, side by side for several."""
    kept = _kept(found)
    return _table(kept) if kept["shortcut"].n_unique() == 1 else _side_by_side(kept)


def _kept(found: Found, where: str = OBEYS) -> pl.DataFrame:
    kept = found.summary.filter(pl.col("measure") == PRECISION, pl.col("ranking") == "signed")
    kept = kept.filter(pl.col("where") == where)
    order = ["task", "model", "mean"]
    return methods(named(kept.sort(order, descending=[False, False, True], nulls_last=True, maintain_order=True)))


def _table(kept: pl.DataFrame, title: str = "Planted words") -> Table:
    """Everything."""
    columns = [
        *which(kept), text("method"), number("mean", "prec. at k"), interval("low", "high"), number("chance"),
        share("obedience"), count("n"),
    ]  # fmt: skip
    caption = "On texts where the model obeys the planted words; obedience is the share of such texts."
    if not kept["learnt"].all():
        caption += " Where it is too low the model has not learnt them, and nothing follows."
    return Table(title, kept, caption, columns)


def _side_by_side(kept: pl.DataFrame) -> Table:
    """Shortcuts as columns; a star where a model has not learnt one."""
    shortcuts = kept["shortcut"].unique(maintain_order=True).to_list()
    star = pl.when("learnt").then(pl.lit("")).otherwise(pl.lit("*"))
    said = pl.col("mean").map_elements(decimal, pl.String) + star
    wide = kept.with_columns(said=said).pivot("shortcut", index=["model", "method"], values="said", maintain_order=True)
    columns = [*([text("model")] if wide["model"].n_unique() > 1 else []), text("method"), *map(text, shortcuts)]
    caption = "Precision at k where the model obeys the planted words; * not learnt with every seed: nothing follows."
    return Table("Planted words", wide, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """Planted words, then toys."""
    figures = found.figures("Precision at k by method")
    learnt = named(found.table("obedience"))
    sure = _table(_kept(found, NEEDED), "Planted words that are needed, each of them")
    tables = [_table(_kept(found)), sure, Table("What the models have learnt", learnt)]
    yield Section("Who finds the words that decide?", "", [MEANING], tables, figures)
    yield Section("Toys whose answer is known by hand", "", [TOYS], [Table("Toys", found.table("toys"))])
