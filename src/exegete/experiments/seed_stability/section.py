"""Seed stability in a report: how far the weights of other seeds are, beside how far they would be by their shape."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.common.tallies import ALL
from exegete.report.columns import count, interval, number, text, wide

MEANING = (
    "The same model was trained with other seeds. JSD is the Jensen–Shannon divergence of its weights and theirs on a "
    "text (natural logarithms, at most 0.693), the median over the other seeds; TVD is how much predictions differ, "
    "the mean over the other seeds. Weights that are nearly flat are near all others, so the other's weights were also "
    "permuted: the ratio of the two divergences is 0 for the same weights and about 1 for weights that have nothing in "
    "common but their shape. Texts of one word have one weight, and are counted as undefined."
)
MEASURES = {
    "jsd": "JSD", "permuted_jsd": "JSD, permuted", "ratio": "ratio of the two", "tvd": "TVD of predictions",
    "adversary_jsd": "JSD of searched adversaries",
}  # fmt: skip
TOGETHER = (pl.col("class") == ALL) & (pl.col("bin") == ALL)
NUMBERS = (
    *wide(text("measure")), number("mean"), interval("low", "high"), *wide(number("reference")), count("seeds"),
    count("others", "other seeds"), count("n"), *wide(count("undefined")),
)  # fmt: skip
WHOLE = shown(
    "All texts",
    *NUMBERS,
    caption="The reference of a JSD is that after permuting; the reference of the ratio is 1.", where=TOGETHER,
    words={"measure": MEASURES},
)  # fmt: skip
BY_CLASS = replace(
    WHOLE,
    title="By predicted class and largest weight",
    columns=(text("class"), text("largest_weight"), *NUMBERS),
    where=~TOGETHER,
    then=lambda frame: frame.with_columns(largest_weight="bin"),
)
RATIO = "Weights of other seeds: JSD over permuted JSD"
headline, sections = chapter(
    replace(WHOLE, title=RATIO, where=TOGETHER & (pl.col("measure") == "ratio")),
    Passage(
        "Do other seeds attend to the same words?",
        [MEANING],
        [WHOLE, BY_CLASS, shown("Every pair of seeds", of="pairs")],
        {"violins": "Divergence by largest weight", "scatter": "Weights and predictions"},
    ),
)
