"""Mediation in a report: what decides, by specification, and how every method orders words."""

import polars as pl

from exegete.base.names import parse
from exegete.experiments.common.section import Passage, chapter, shown
from exegete.experiments.mediation.experiment import ATTENTION, SPECIFICATION, TEST
from exegete.experiments.mediation.statistics import name_of
from exegete.page.columns import count, interval, number, share, text, wide

MEANING = (
    "Every word of a text is removed, in several ways, and what the predicted class loses is its effect. Then every "
    "weight is zeroed with all states as they are. M says how much of what words do goes through their own weights: 1 "
    "where zeroing a weight does what removing its word does, 0 where weights do nothing. Γ says whether weights order "
    "words by their effects: 1 for the best order, 0 for a random one, and ties among words that don't matter cost "
    "nothing. Attention may be read where M and Γ are high however a word is removed."
)
COMPANY = (
    "Alone: from the whole text. In company: from what is left when a random half of the words is gone, the mean over "
    "several halves; two words that each are enough for a prediction show there. A text is void where no word moves "
    "the prediction by ½ log-odds: there is nothing to order."
)


REMOVED = text("specification", "a word is removed by")


def of_attention(summary: pl.DataFrame) -> pl.DataFrame:
    """Attention's lines on the test texts, each with its specification in words."""
    own = [method for method in summary["method"].unique() if parse(method).name == ATTENTION]
    kept = summary.filter(pl.col("method").is_in(own), pl.col("split") == TEST)
    names = [name_of(*key) for key in kept.select(SPECIFICATION).iter_rows()]
    return kept.with_columns(specification=pl.Series(names, dtype=pl.String))


def of_methods(summary: pl.DataFrame) -> pl.DataFrame:
    """Γ of every method, the mean over specifications, the least and the most of them."""
    kept = summary.filter(pl.col("split") == TEST).group_by("task", "model", "method", maintain_order=True).agg(
        pl.col("ranks").mean(), pl.col("ranks").min().alias("least"), pl.col("ranks").max().alias("most"),
        pl.col("n").max(),
    )  # fmt: skip
    return kept.sort("ranks", descending=True, maintain_order=True)


DECIDES = shown(
    "What words do, and what their weights do",
    REMOVED, number("reads", "M"), interval("reads_low", "reads_high"), number("ranks", "Γ of words"),
    interval("ranks_low", "ranks_high"), count("n"), *wide(number("locates", "Γ of states"), share("void")),
    caption="Means over texts, 95 % intervals. Chance: M 0, Γ 0. Attention may be read where M > 0.25 and Γ > 0.7.",
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
    text("method"), number("ranks", "Γ"), number("least"), number("most"), count("n"),
    caption="Means over specifications, the least and the most of them. Methods that erase words nearly compute it.",
    first=of_methods,
)  # fmt: skip
headline, sections = chapter(
    DECIDES,
    Passage("Do words act through their weights?", [MEANING, COMPANY], [DECIDES, SIGN, METHODS], "Γ and M"),
)
