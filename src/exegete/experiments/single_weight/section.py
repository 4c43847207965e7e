"""Single weights in a report: does the output change more without the highest weight than without another?"""

from collections.abc import Iterator

import polars as pl

from exegete.experiments.common.section import Found, which
from exegete.experiments.single_weight.experiment import SingleWeight
from exegete.page.columns import Column, count, decimal, interval, number, share, text
from exegete.page.panels import named
from exegete.page.section import Section, Table

TITLE = "ΔJS of the highest weight against a random other"
MEANING = (
    "The highest weight of the last attention is set to 0 and the others are renormalised (in a model with a null key, "
    "that key takes the weight instead); then the same is done with a random other weight. ΔJS is the change of the "
    "output (Jensen–Shannon divergence, natural logarithm, at most 0.693) without the highest, less that without the "
    "other. Exchangeable weights would give a mean of 0. A large weight is removed here with the mass that it has, so "
    "it must change more: negative values are the telling ones."
)
LEGACY = (
    "The random other weight is drawn as in the released code: any position but the first, which may be the highest "
    "weight itself (column: same)."
)


def headline(found: Found) -> Table:
    """Mean ΔJS and the share of negative ones, by task and model."""
    shown = _thousandths(found.summary)
    columns = [*which(shown), *_mean(), share("negative"), count("n")]
    return Table(TITLE, shown, "ΔJS in thousandths.", columns)


def _thousandths(frame: pl.DataFrame) -> pl.DataFrame:
    """ΔJS of a single key is small: a thousandth is the unit that a reader can compare."""
    return named(frame).with_columns(pl.col("mean", "low", "high") * 1000)


def _mean() -> list[Column]:
    return [number("mean", "mean ΔJS × 1000"), interval("low", "high")]


def _whole(found: Found, legacy: bool) -> Table:
    shown = _thousandths(found.summary)
    columns = [
        *which(shown), *_mean(), number("chance"), share("negative"),
        interval("negative_low", "negative_high", "interval of negative"), count("n"), count("undefined"),
        count("emptied"), *([count("same")] if legacy else []),
    ]  # fmt: skip
    caption = (
        "Undefined: texts of one key. Emptied: texts where sparse attention leaves no weight without the highest; the "
        "bias decides there."
    )
    return Table(TITLE, shown, caption, columns)


def _tenths(found: Found) -> Table:
    frame = _thousandths(found.table("tenths"))
    ends = [f"{decimal(low, 1)} to {decimal(low + 0.1, 1)}" for low in frame["tenth"]]
    shown = frame.with_columns(pl.Series("from_to", ends, dtype=pl.String))
    columns = [
        *which(shown), text("from_to", "difference of weights"), *_mean(), share("negative"),
        interval("negative_low", "negative_high", "interval of negative"), count("n"),
    ]  # fmt: skip
    return Table("The same by tenths of the difference of weights", shown, "", columns)


def sections(found: Found) -> Iterator[Section]:
    """The numbers, by tenths of the difference, and the figures."""
    asked: SingleWeight = found.experiment
    legacy = asked.sampler == "legacy"
    titles = {"scatter": "ΔJS over the difference of weights", "negatives": "Where the other weight matters more"}
    figures = found.figures(**titles)
    tables = [_whole(found, legacy), _tenths(found)]
    said = [MEANING, *([LEGACY] if legacy else [])]
    yield Section("Does the highest weight matter most?", "", said, tables, figures)
