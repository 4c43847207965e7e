"""Importance sets in a report: how much must go before the decision flips, in whose order."""

from dataclasses import replace

from exegete.experiments.common.depth import add_places
from exegete.experiments.common.section import Passage, chapter, shown
from exegete.report.columns import count, interval, mean_and_spread, number, probability, share, text, varying, wide

LABELS = {
    "attention": "attention",
    "gradient": "gradient",
    "gradient_x_attention": "gradient × attention",
    "random": "random",
    "attention_ascending": "attention, lowest first",
}

MEANING = (
    "Weights of the last attention are set to 0 one after the other, the rest renormalised (in a model with a null "
    "key, that key takes the weight instead), until the decision flips. A ranking that finds what the decision hangs "
    "on needs a small fraction of the keys; random orders are the level to beat (the mean over several). A text that "
    "never flips, not even without any weight, is of the class that the bias prefers: it counts as 1 here. The paper "
    "leaves such texts out, so that every ranking is measured on other texts: that is the second table. Emptied: texts "
    "that flip only when no weight is left, where the bias alone decides; their fraction says nothing of the ranking."
)
CENSORED = shown(
    "Fraction of keys removed before the first flip",
    varying("sites", "weights of"), text("scheme", "order"), number("mean", "mean fraction"), interval("low", "high"),
    *wide(number("median"), interval("median_low", "median_high"), number("mass", "attention gone")),
    *wide(number("chance", "random")), count("n"), count("excluded", "never flips"),
    *wide(count("emptied"), count("undefined")),
    caption="Texts that never flip count as 1. Undefined: texts of one key.", words={"scheme": LABELS},
    first=add_places,
)  # fmt: skip
PUBLISHED = shown(
    "The same as Serrano & Smith report it",
    varying("sites", "weights of"), text("scheme", "order"),
    mean_and_spread("fraction", "fraction_std", "fraction, mean ± std"),
    mean_and_spread("mass", "mass_std", "attention gone, mean ± std"), count("n"), count("excluded"),
    caption="Only texts that flip under each order; of random orders the first.", of="serrano_smith",
    words={"scheme": LABELS}, first=add_places,
)  # fmt: skip
PAIRED = shown(
    "Orders in pairs",
    varying("sites", "weights of"), text("first"), text("second"), text("texts"),
    number("difference"), interval("low", "high"),
    share("fewer", "first needs fewer"), share("more", "first needs more"), probability("p", "sign test p"),
    count("n"),
    caption="Fraction of the first less that of the second, on the same texts: all, or those that both flip. Of "
    "several seeds p is the largest.", of="paired", words={"first": LABELS, "second": LABELS}, first=add_places,
)  # fmt: skip
headline, sections = chapter(
    replace(CENSORED, caption="Texts that never flip count as 1."),
    Passage(
        "How much must go before the decision flips?",
        [MEANING],
        [CENSORED, PUBLISHED, PAIRED],
        "Fraction removed by order",
    ),
)
