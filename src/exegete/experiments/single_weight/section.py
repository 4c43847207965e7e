"""Single weights in a report: does the output change more without the highest weight than without another?"""

from dataclasses import replace

import polars as pl

from exegete.experiments.common.section import Passage, QuestionResult, chapter, shown
from exegete.report.columns import count, decimal, interval, number, share, text, wide
from exegete.report.section import Table

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


def _thousandths(frame: pl.DataFrame) -> pl.DataFrame:
    """ΔJS of a single key is small: a thousandth is the unit that a reader can compare."""
    return frame.with_columns(pl.col("mean", "low", "high") * 1000)


def _tenths(frame: pl.DataFrame) -> pl.DataFrame:
    ends = [f"{decimal(low, 1)} to {decimal(low + 0.1, 1)}" for low in frame["tenth"]]
    return _thousandths(frame).with_columns(pl.Series("from_to", ends, dtype=pl.String))


MEAN = (number("mean", "mean ΔJS × 1000"), interval("low", "high"))
NEGATIVE = (share("negative"), *wide(interval("negative_low", "negative_high", "interval of negative")))
WHOLE = shown(
    "ΔJS of the highest weight against a random other",
    *MEAN, *wide(number("chance")), *NEGATIVE, count("n"), *wide(count("undefined"), count("emptied")),
    caption="Undefined: texts of one key. Emptied: texts where sparse attention leaves no weight without the highest; "
    "the bias decides there.", then=_thousandths,
)  # fmt: skip
TENTHS = shown(
    "The same by tenths of the difference of weights",
    text("from_to", "difference of weights"), *MEAN, *NEGATIVE, count("n"),
    of="tenths", then=_tenths,
)  # fmt: skip


def _whole(found: QuestionResult) -> Table:
    """All texts; how often both weights are the same is told where they may be."""
    legacy = found.experiment.sampler == "legacy"
    return replace(WHOLE, columns=(*WHOLE.columns, count("same")))(found) if legacy else WHOLE(found)


def _meaning(found: QuestionResult) -> list[str]:
    return [MEANING, *([LEGACY] if found.experiment.sampler == "legacy" else [])]


headline, sections = chapter(
    replace(WHOLE, caption="ΔJS in thousandths."),
    Passage(
        "Does the highest weight matter most?",
        _meaning,
        [_whole, TENTHS],
        {"scatter": "ΔJS over the difference of weights", "negatives": "Where the other weight matters more"},
    ),
)
