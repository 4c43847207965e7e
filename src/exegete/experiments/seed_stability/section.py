"""Seed stability in a report: how far the weights of other seeds are, beside how far they would be by their shape."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.common.tallies import ALL
from exegete.page.columns import count, interval, number, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

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
CAPTION = "The reference of a JSD is that after permuting; the reference of the ratio is 1."


def headline(found: Found) -> Table:
    """The ratio for every model, all texts together."""
    kept = found.summary.filter(pl.col("class") == ALL, pl.col("bin") == ALL)
    whole = _table(kept.filter(pl.col("measure") == "ratio"), "Weights of other seeds: JSD over permuted JSD")
    return replace(whole, columns=[c for c in whole.columns if c.title not in ("measure", "reference", "undefined")])


def _table(kept: pl.DataFrame, title: str, *more: str) -> Table:
    shown = named(kept).with_columns(pl.col("measure").replace_strict(MEASURES))
    columns = [
        *which(shown), *(text(name) for name in more), text("measure"), number("mean"), interval("low", "high"),
        number("reference"), count("seeds"), count("others", "other seeds"), count("n"), count("undefined"),
    ]  # fmt: skip
    return Table(title, shown, CAPTION, columns)


def sections(found: Found) -> Iterator[Section]:
    """All texts, then by class and largest weight."""
    titles = {"violins": "Divergence by largest weight", "scatter": "Weights and predictions"}
    figures = found.figures(**titles)
    summary = found.summary
    together = (pl.col("class") == ALL) & (pl.col("bin") == ALL)
    rest = summary.filter(~together).with_columns(largest_weight="bin")
    pairs = Table("Every pair of seeds", named(found.table("pairs")))
    tables = [
        _table(summary.filter(together), "All texts"),
        _table(rest, "By predicted class and largest weight", "class", "largest_weight"),
        pairs,
    ]
    yield Section("Do other seeds attend to the same words?", "", [MEANING], tables, figures)
