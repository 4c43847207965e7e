"""Decision flips in a report: the 2 × 2 table of Serrano & Smith, with intervals."""

from dataclasses import replace

from exegete.experiments.common.section import Passage, chapter, shown
from exegete.report.columns import count, interval, number, probability, share, text, wide

MEANING = (
    "The highest weight of the last attention is set to 0, or a random other one, and the others are renormalised (in "
    "a model with a null key, that key takes the weight instead): does the class with the highest probability change? "
    "Texts where both removals do the same say nothing of one against the other. McNemar's exact p compares the texts "
    "that only the highest flips with those that only the other flips; of several seeds it is the largest."
)
MARGINS = shown(
    "Texts whose decision flips",
    share("top", "without the highest"), *wide(interval("top_low", "top_high")),
    share("random", "without another"),
    *wide(interval("random_low", "random_high"), number("difference"), interval("low", "high")),
    probability("p", "McNemar p"), count("n"), *wide(count("undefined")),
    caption="Undefined: texts of one key.", of="margins",
)  # fmt: skip
JOINT = shown(
    "Joint shares",
    text("remove_top", "highest flips"), text("remove_random", "other flips"), share("share"),
    interval("low", "high"), count("count"), count("n"), count("emptied"),
    caption="Emptied: no weight is left without the highest.",
)  # fmt: skip
PAPER = shown("As in table 2 of Serrano & Smith, in percent", of="serrano_smith")
headline, sections = chapter(
    replace(MARGINS, caption=""),
    Passage("Does the highest weight decide?", [MEANING], [MARGINS, JOINT, PAPER], "Decision flips"),
)
