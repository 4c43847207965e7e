"""Permutation in a report: how far predictions move when the weights are on other words."""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.depth import add_places
from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.permutation.experiment import MOVED
from exegete.report.columns import count, interval, number, share, text, varying, wide

MEANING = (
    "The weights of a text are shuffled over its words, many times, with the states as they are. If weights say how "
    "much each word counts, predictions should move. Per text: the median over permutations of the total variation "
    "distance of the prediction, and of the change of its margin (the logit of the predicted class minus the best "
    "other): near 0 or 1 a probability hardly moves, whatever the weights do. Flat weights can't move anything either: "
    "read it by the largest weight. Texts with a single key have nothing to permute and are counted as undefined."
)


def _beside(kept: pl.DataFrame) -> pl.DataFrame:
    """TVD, and the means of the other measures in columns of their own."""
    kept = add_places(kept)
    keys = ["task", "model", "split", "sites", "class"]
    tvd, others = kept.filter(pl.col("measure") == TVD), kept.filter(pl.col("measure") != TVD)
    wide = others.pivot("measure", index=keys, values="mean", maintain_order=True)
    return tvd.join(wide, on=keys, how="left", maintain_order="left")


TVD, ALL = "median_tvd", "all"
MEAN = (number("mean", "median TVD"), interval("low", "high"))
PERMUTED = shown(
    "Permuted weights",
    varying("sites", "weights of"), *wide(text("class")), *MEAN, share("moved", f"> {MOVED:g}"),
    *wide(number("median_logit", "median |Δ margin|")), share("flips"), count("n"), *wide(count("undefined")),
    caption="Means over texts of their medians over permutations; flips: share of permutations that change the class. "
    "If the weights had no effect, all would be 0.", where=pl.col("bin") == ALL, first=_beside,
)  # fmt: skip
BY_BIN = shown(
    "By largest weight",
    varying("sites", "weights of"), text("bin", "largest weight"), *MEAN, number("median"),
    share("moved", f"> {MOVED:g}"), count("n"), count("undefined"),
    caption="All classes together.", first=add_places,
    where=(pl.col("class") == ALL) & (pl.col("bin") != ALL) & (pl.col("measure") == TVD),
)  # fmt: skip
headline, sections = chapter(
    replace(PERMUTED, where=(pl.col("bin") == ALL) & (pl.col("class") == ALL)),
    Passage(
        "Does the prediction care which word carries which weight?",
        [MEANING],
        [PERMUTED, BY_BIN],
        {
            "tvd": "Change of the prediction by largest weight",
            "logit": "Change of the margin by largest weight",
            "kinds": "Change of the prediction by kind of task",
        },
    ),
)
