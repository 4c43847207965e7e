"""Permutation in a report: how far predictions move when the weights are on other words."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.permutation.experiment import MOVED
from exegete.page.columns import count, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

MEANING = (
    "The weights of a text are shuffled over its words, many times, with the states as they are. If weights say how "
    "much each word counts, predictions should move. Per text: the median over permutations of the total variation "
    "distance of the prediction, and of the change of its margin (the logit of the predicted class minus the best "
    "other): near 0 or 1 a probability hardly moves, whatever the weights do. Flat weights can't move anything either: "
    "read it by the largest weight. Texts with a single key have nothing to permute and are counted as undefined."
)
TITLES = {"tvd": "Change of the prediction by largest weight", "logit": "Change of the margin by largest weight"}


def headline(found: Found) -> Table:
    """Median TVD over all texts."""
    whole = _by_class(named(found.summary.filter(pl.col("bin") == "all", pl.col("class") == "all")))
    narrow = [column for column in whole.columns if column.title not in ("class", "median |Δ margin|", "undefined")]
    return replace(whole, columns=narrow)


def _by_class(kept: pl.DataFrame) -> Table:
    tvd = kept.filter(pl.col("measure") == "median_tvd")
    beside = kept.filter(pl.col("measure") != "median_tvd").pivot(
        "measure", index=["task", "model", "split", "class"], values="mean", maintain_order=True
    )
    whole = tvd.join(beside, on=["task", "model", "split", "class"], how="left", maintain_order="left")
    columns = [
        *which(whole), text("class"), number("mean", "median TVD"), interval("low", "high"),
        share("moved", f"> {MOVED:g}"), number("median_logit", "median |Δ margin|"), share("flips"), count("n"),
        count("undefined"),
    ]  # fmt: skip
    caption = (
        "Means over texts of their medians over permutations; flips: share of permutations that change the class. "
        "If the weights had no effect, all would be 0."
    )
    return Table("Permuted weights", whole, caption, columns)


def sections(found: Found) -> Iterator[Section]:
    """By class, by largest weight, and violins."""
    summary = named(found.summary)
    binned = summary.filter(pl.col("class") == "all", pl.col("bin") != "all", pl.col("measure") == "median_tvd")
    columns = [
        *which(binned), text("bin", "largest weight"), number("mean", "median TVD"), interval("low", "high"),
        number("median"), share("moved", f"> {MOVED:g}"), count("n"), count("undefined"),
    ]  # fmt: skip
    by_bin = Table("By largest weight", binned, "All classes together.", columns)
    figures = found.figures(**TITLES)
    tables = [_by_class(summary.filter(pl.col("bin") == "all")), by_bin]
    yield Section("Does the prediction care which word carries which weight?", "", [MEANING], tables, figures)
