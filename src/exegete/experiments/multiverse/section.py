"""The multiverse in a report: the range of all specifications, the share of every choice, the curves."""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.multiverse.figure import AMONG, CHOICES, SCALES, coefficient_label
from exegete.page.columns import count, interval, number, share, text
from exegete.page.labels import importance_label
from exegete.page.panels import named
from exegete.page.section import Figure, Section, Table

MEANING = (
    "Attention is compared with every size of the gradient (with attention held fixed or not; of the logit, the "
    "probability or the loss) and with leave-one-out, by every coefficient, for every seed. Each combination is a "
    "specification that a paper could have reported. Scores are taken by size: attention has no sign. A mean is read "
    "against the level of unrelated rankings, which is 0 for τ and is not for top-k coefficients."
)
DIVIDED = (
    "The means of all specifications and seeds spread; a choice's share is the part of that variance that its levels "
    "explain by themselves, and the rest is explained only by choices in combination. As printed, coefficients with "
    "another chance level differ by that alone; above chance, (mean − chance) / (1 − chance), they can be compared. "
    "Shares are about the levels that were asked for: another grid has other shares. Intervals are over texts."
)


def headline(found: Found) -> Table:
    """Between what the means lie."""
    table = named(found.table("range"))
    columns = [
        *which(table), number("lowest"), number("median"), number("highest"), count("above_chance"),
        count("below_chance"), count("specifications"),
    ]  # fmt: skip
    caption = (
        "Means of all specifications; above and below chance: how many have a 95 % interval that lies beyond the level "
        "of unrelated rankings."
    )
    return Table("Agreement under every choice", table, caption, columns)


def _ends(found: Found) -> Table:
    table = named(found.table("range")).with_columns(
        *(pl.col(name).map_elements(_specification, pl.String) for name in ("lowest_is", "highest_is"))
    )
    columns = [
        *which(table), number("lowest"), text("lowest_is", "with"), number("highest"), text("highest_is", "with"),
    ]  # fmt: skip
    return Table("The ends of the curve", table, "The specifications with the lowest and the highest mean.", columns)


def _specification(written: str) -> str:
    importance, coefficient = written.split(" · ")
    return f"{importance_label(importance)}, {coefficient_label(coefficient)}"


def _shares(found: Found) -> Table:
    table = found.table("shares").filter(pl.col("among").is_in(list(AMONG)))
    table = named(table).with_columns(
        pl.col("choice").replace_strict(CHOICES), pl.col("among").replace_strict(AMONG),
        pl.col("scale").replace_strict(SCALES),
    )  # fmt: skip
    columns = [
        *which(table), text("among"), text("scale"), text("choice"), count("levels"), share("share"),
        interval("low", "high"), count("specifications", "specifications × seeds"), count("n", "texts"),
    ]  # fmt: skip
    return Table("What moves the result", table, "Shares of the variance of the means.", columns)


def _means(found: Found) -> Table:
    table = named(found.summary.sort("task", "model", "mean", nulls_last=True, maintain_order=True)).with_columns(
        pl.col("importance").map_elements(importance_label, pl.String),
        pl.col("coefficient").map_elements(coefficient_label, pl.String),
    )
    columns = [
        *which(table), text("importance"), text("coefficient"), number("mean"), interval("low", "high"),
        number("chance"), number("above", "above chance"), count("seeds"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table("Every specification", table, "Means over texts and seeds.", columns)


def sections(found: Found) -> Iterator[Section]:
    """The curves with their range, then what moves the result."""
    charts = dict(found.charts())
    moves = Figure("Shares of variance by choice", charts.pop("shares"))
    tasks = found.summary["task"].unique(maintain_order=True).to_list()
    drawn = [Figure(f"Specification curves: {t}", c) for t, c in zip(tasks, charts.values(), strict=True)]
    yield Section("What if other choices had been made?", "", [MEANING], [headline(found), _ends(found)], drawn)
    yield Section("Which choice moves the result?", "", [DIVIDED], [_shares(found), _means(found)], [moves])
