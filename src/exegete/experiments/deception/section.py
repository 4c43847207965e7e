"""Deception in a report: what attention was made to hide, and who finds it all the same."""

import polars as pl

from exegete.experiments.common.section import Passage, chapter, keep_decimals, shown
from exegete.experiments.deception.experiment import BASE, PRECISION
from exegete.report.columns import count, interval, number, text, wide

MEANING = (
    "Planted words decide the class of every test text. The same model was trained once more from the same start, with "
    "a penalty λ on the attention that these words get. If it is as accurate, its attention hides the reason of every "
    "prediction: states of other words carry it. Precision at k is the share of the planted words among the k highest "
    "ones, on texts where the model obeys them; chance is that of a random ranking, for the weight that of uniform "
    "attention, for accuracy the most frequent class. A model that obeys in too few texts has lost the words instead "
    "of hiding them: it has not learnt the task, and nothing follows from its precision."
)


def _said(frame: pl.DataFrame) -> pl.DataFrame:
    star = pl.when("learnt").then(pl.lit("")).otherwise(pl.lit(", not learnt"))
    return keep_decimals(frame, "lam").with_columns(pl.col("who") + star)


WHO = {"who": {BASE: "honest", "deceiver": "deceptive"}}
NUMBERS = (
    interval("low", "high"), number("chance"), *wide(count("seeds")), count("n"), *wide(count("undefined")),
)  # fmt: skip
WEIGHTS = shown(
    "Attention on planted words, and accuracy",
    text("who", "model"), text("lam", "λ"), text("measure"), number("mean"), *NUMBERS,
    caption="Mass is the attention that planted words get; undefined in texts that have no other words.",
    where=pl.col("measure") != PRECISION, words=WHO, then=_said,
)  # fmt: skip
METHODS = shown(
    "Who finds the planted words",
    text("who", "model"), text("lam", "λ"), text("method"), number("mean", "prec. at k"), *NUMBERS,
    caption="Undefined: texts in which the model does not obey.", where=pl.col("measure") == PRECISION, words=WHO,
    then=_said,
)  # fmt: skip
headline, sections = chapter(
    WEIGHTS, Passage("What can attention hide?", [MEANING], [WEIGHTS, METHODS], "An honest model and a deceptive one")
)
