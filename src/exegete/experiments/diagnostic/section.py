"""The diagnostic in a report: a model of single words under weights from elsewhere, and what the imposed ones add."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, better, chapter, shown
from exegete.experiments.diagnostic.experiment import LEVEL
from exegete.report.columns import count, interval, number, text

MEASURES = {"accuracy": "accuracy", "f1": "F1"}
LABELS = {
    "base": "the model itself",
    "adversary": "its adversary",
    "own": "own weights",
    "uniform": "uniform weights",
    "imposed": "the model's weights",
    "imposed_adversary": "the adversary's weights",
}

MEANING = (
    "A model that sees single words, without context, was trained with its own attention, with uniform weights, with "
    "the weights of the model in question, imposed text by text in training and at test, and with those of an "
    "adversary that predicts as the model does with other weights. F1 is that of the second class, or the mean over "
    "the classes that texts have where there are more than two."
)
SOUGHT = (
    "Wiegreffe & Pinter look for this pattern: the model's weights help at least as much as own ones, and those of the "
    "adversary help less. Then attention says something about the words that another model can use; that it is how the "
    "first one decides does not follow."
)
COMPARED = pl.col("against") != LEVEL
DIFFERENCES = shown(
    "What the model's weights add",
    text("measure"), text("against"), number("mean", "difference"), interval("low", "high"), text("imposed"),
    count("seeds"), count("n"),
    caption="Paired by text; the reference is 0.", where=COMPARED,
    words={"measure": MEASURES, "against": LABELS}, then=lambda frame: frame.with_columns(imposed=better()),
)  # fmt: skip
LEVELS = shown(
    "Under all weights",
    text("measure"), text("weights"), number("mean"), interval("low", "high"), number("reference", "majority"),
    count("seeds"), count("n"),
    where=~COMPARED, words={"measure": MEASURES, "weights": LABELS},
)  # fmt: skip
FAR = shown(
    "How far the weights are from the model's",
    caption="JSD of the weights, undefined for one word; TVD of the predictions, where rows have it: an adversary "
    "predicts as the model does only if its TVD is near 0.", of="weights", words={"weights": LABELS},
)  # fmt: skip
headline, sections = chapter(
    replace(DIFFERENCES, where=COMPARED & (pl.col("measure") == "accuracy")),
    Passage(
        "Do the weights help a model of single words?",
        [MEANING, SOUGHT],
        [DIFFERENCES, LEVELS, FAR],
        "Accuracy and F1 by weights",
    ),
)
