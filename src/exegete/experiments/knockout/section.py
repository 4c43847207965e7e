"""Knockout in a report: in which layers a word reaches the prediction."""

from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.knockout.figure import SOURCES, WORDS
from exegete.report.columns import count, interval, number, text

MEANING = (
    "The edges to one word were cut in a window of layers, for every token or only for the one that the prediction is "
    "read from, with all positions kept. What is lost is told in log-odds of the predicted class, with the sign that "
    "cutting the word at all sites has. A word that is read late was carried through its own place; one that is read "
    "early reached the prediction through others. The strongest word is that of the text which costs most when it is "
    "cut everywhere, so its numbers are above those of a word that was chosen beforehand."
)
WINDOWS = shown(
    "Edges to a word cut",
    text("words"), text("source", "edges"), count("first", "from layer"), count("last", "to layer"),
    number("mean", "log-odds lost"), interval("low", "high"), count("n"),
    caption="Without layers: cut at all sites. No effect: 0.", words={"words": WORDS, "source": SOURCES},
)  # fmt: skip

headline, sections = chapter(
    WINDOWS,
    Passage(
        "In which layers does a word reach the prediction?",
        [MEANING],
        [WINDOWS],
        {"windows": "Edges cut in a window of layers"},
    ),
)
