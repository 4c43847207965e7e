"""Known answers in a report: who finds the planted words, what the models have learnt, and the toys."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, by_mean, chapter, shown
from exegete.experiments.known_answer.experiment import NEEDED, OBEYS, PRECISION
from exegete.report.columns import count, decimal, interval, number, share, text, varying
from exegete.report.section import Table

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
SIGNED = (pl.col("measure") == PRECISION) & (pl.col("ranking") == "signed")
OBEYED = shown(
    "Planted words",
    text("method"), number("mean", "prec. at k"), interval("low", "high"), number("chance"), share("obedience"),
    count("n"),
    caption="On texts where the model obeys the planted words; obedience is the share of such texts.",
    where=SIGNED & (pl.col("where") == OBEYS), first=by_mean("task", "model"),
)  # fmt: skip
SURE = replace(OBEYED, title="Planted words that are needed, each of them", where=SIGNED & (pl.col("where") == NEEDED))


def _doubted(table: Table) -> Table:
    """Where a model has not learnt the planted words, the caption says so."""
    unlearnt = " Where it is too low the model has not learnt them, and nothing follows."
    return table if table.frame["learnt"].all() else replace(table, caption=table.caption + unlearnt)


def _side_by_side(found: QuestionResult) -> Table:
    """With intervals for one shortcut; several as columns, a star where a model has not learnt one."""
    table = OBEYED(found)
    kept = table.frame
    shortcuts = kept["shortcut"].unique(maintain_order=True).to_list()
    if len(shortcuts) == 1:
        return _doubted(table)
    star = pl.when("learnt").then(pl.lit("")).otherwise(pl.lit("*"))
    said = pl.col("mean").map_elements(decimal, pl.String) + star
    wide = kept.with_columns(said=said).pivot("shortcut", index=["model", "method"], values="said", maintain_order=True)
    caption = "Precision at k where the model obeys the planted words; * not learnt with every seed: nothing follows."
    return Table("Planted words", wide, caption, [varying("model"), text("method"), *map(text, shortcuts)])


headline, sections = chapter(
    _side_by_side,
    Passage(
        "Who finds the words that decide?",
        [MEANING],
        [
            lambda found: _doubted(OBEYED(found)),
            lambda found: _doubted(SURE(found)),
            shown("What the models have learnt", of="obedience"),
        ],
        "Precision at k by method",
    ),
    Passage("Toys whose answer is known by hand", [TOYS], [lambda found: Table("Toys", found.table("toys"))]),
)
