"""Gating in a report: the same model with gates in place of attention, beside what another seed changes."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, chapter, shown
from exegete.report.columns import count, interval, number, text

MEANING = (
    "For one text without a question, attention can be read as a gate (Vashishth et al. 2019, proposition 4.1). The "
    "same model was trained anew with a sigmoid gate per word, which takes nothing from others, in place of weights "
    "that sum to 1. τ compares how the two rank the words of a text. A model with another seed differs too, and by how "
    "much is the reference: only a τ below that one says that gates choose other words."
)
OPEN = (
    "Nothing makes gates shut. Where the mean gate is near 1 and gates hardly differ in a text, they choose nothing: "
    "the model pools all words alike, and its τ ranks tiny differences. Equal accuracy then says that the task doesn't "
    "need a choice of words."
)
FEW = (
    "Gates and weights come from different trainings. With fewer than five seeds a difference between them is one of "
    "these models, not of the recipe."
)
MEASURES = {
    "accuracy": "accuracy", "change": "change of accuracy", "tau": "τ with the model's attention",
    "same": "same prediction as the model", "gate": "mean gate", "gate_spread": "spread of gates in a text",
}  # fmt: skip
GATES = shown(
    "Gates in place of attention",
    text("measure"), text("who", "of"), number("mean"), interval("low", "high"), count("n"), count("undefined"),
    count("seeds"),
    caption="Another seed: the same model trained again, the reference. Difference: gates less another seed, on the "
    "same texts. Gates that differ: by 0.01 or more. Undefined: one word, or equal weights.",
    words={"measure": MEASURES},
)  # fmt: skip
BY_CLASS = shown(
    "By predicted class",
    text("predicted"), number("tau", "τ of gates"), number("tau_again", "τ of another seed"),
    number("gate", "mean gate"), number("change", "change of accuracy"), count("n"), count("undefined"),
    caption="τ with the model's attention.", of="classes",
)  # fmt: skip
headline, sections = chapter(
    replace(GATES, where=pl.col("measure").is_in(["accuracy", "tau", "gate"])),
    Passage("Is attention a gate?", [MEANING, OPEN, FEW], [GATES, BY_CLASS], "Attention, gates, another seed"),
)
