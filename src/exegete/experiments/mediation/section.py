"""Mediation in a report: what decides, by specification, and how every method orders words."""

import polars as pl

from exegete.base.names import parse
from exegete.experiments.common.margins import Margins
from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.mediation.experiment import ATTENTION, SPECIFICATION, TEST
from exegete.experiments.mediation.statistics import specification_name
from exegete.report.columns import count, interval, number, share, text, wide

MEANING = (
    "Every word of a text is removed, in several ways, and what the predicted class loses is its effect. Then every "
    "weight is zeroed with all states as they are. M says how much of what words do goes through their own weights: 1 "
    "where zeroing a weight does what removing its word does, 0 where weights do nothing. Γ says whether weights order "
    "words by their effects: 1 for the best order, 0 for a random one, and ties among words that don't matter cost "
    "nothing. F says whether the differences of weights count: 0 where equal weights would give the same prediction. "
    "Attention may be read where all three are high however a word is removed."
)
COMPANY = (
    "Alone: from the whole text. In company: from what is left when a random half of the words is gone, the mean over "
    "several halves; two words that each are enough for a prediction show there. A text is void where no word moves "
    "the prediction by ½ log-odds: there is nothing to order."
)


CEILING = (
    "No single order of words is the best however they are removed, so beside Γ stands its ceiling: what the best "
    "single order reaches. Idle words have weight and do nothing; an order of words loses by them."
)
REMOVED = text("specification", "a word is removed by")
ADDED = ("carries", "carries_low", "carries_high", "ceiling", "ranks_active", "idle")  # which runs of before don't have


def of_attention(summary: pl.DataFrame) -> pl.DataFrame:
    """Attention's lines on the test texts, each with its specification in words; what a run of before doesn't have is
    null.
    """
    own = [method for method in summary["method"].unique() if parse(method).name == ATTENTION]
    kept = summary.filter(pl.col("method").is_in(own), pl.col("split") == TEST)
    names = [specification_name(*key) for key in kept.select(SPECIFICATION).iter_rows()]
    missing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in ADDED if name not in kept.columns]
    return kept.with_columns(*missing, specification=pl.Series(names, dtype=pl.String))


def of_methods(summary: pl.DataFrame) -> pl.DataFrame:
    """Γ of every method, the mean over specifications, the least and the most of them, and the ceiling of all."""
    ceiling = of_attention(summary).group_by("task", "model", maintain_order=True).agg(pl.col("ceiling").mean())
    kept = summary.filter(pl.col("split") == TEST).group_by("task", "model", "method", maintain_order=True).agg(
        pl.col("ranks").mean(), pl.col("ranks").min().alias("least"), pl.col("ranks").max().alias("most"),
        pl.col("n").max(),
    ).join(ceiling, on=["task", "model"], how="left", maintain_order="left")  # fmt: skip
    return kept.sort("ranks", descending=True, maintain_order=True)


def mediation_caption(margins: Margins) -> str:
    """The caption of what decides."""
    where = f"M > {margins['reads']:g}, F > {margins['carries']:g} and Γ > {margins['ranks']:g}"
    return f"Means over texts, 95 % intervals. Chance: 0 of all three. Attention may be read where {where}."


DECIDES = shown(
    "What words do, and what their weights do",
    REMOVED, number("reads", "M"), interval("reads_low", "reads_high"), number("ranks", "Γ of words"),
    interval("ranks_low", "ranks_high"), *wide(number("ceiling")), count("n"),
    *wide(number("carries", "F"), interval("carries_low", "carries_high"),
          number("locates", "Γ of states"), share("void")),
    caption=mediation_caption, first=of_attention,
)  # fmt: skip
IDLE = shown(
    "Words that have weight and do nothing",
    REMOVED, share("idle", "weight on idle words"), number("ranks", "Γ of words"),
    number("ranks_active", "Γ without idle words"), number("ceiling"), count("n"),
    caption="Idle: twice the mean weight or more, and less than 5 % of the largest effect of its text.",
    first=of_attention,
)  # fmt: skip
SIGN = shown(
    "M in two ways, and the sign",
    REMOVED, number("reads", "M, mean over texts"), number("reads_pooled", "M, all words together"),
    number("opposed", "weight on words against"), interval("opposed_low", "opposed_high"), count("n"),
    caption="Against: words whose removal raises the prediction.", first=of_attention,
)  # fmt: skip
METHODS = shown(
    "How every method orders words by what they do",
    text("method"), number("ranks", "Γ"), number("least"), number("most"), *wide(number("ceiling")), count("n"),
    caption="Means over specifications, the least and the most of them. Methods that erase words nearly compute it.",
    first=of_methods,
)  # fmt: skip
headline, sections = chapter(
    DECIDES,
    Passage(
        "Do words act through their weights?",
        [MEANING, COMPANY, CEILING],
        [DECIDES, METHODS, IDLE, SIGN],
        {"mediation": "M, F and Γ"},
    ),
)
