"""Words: the importance of a word averaged over a corpus (Li et al. 2016b, in Bastings & Filippova 2020, 3.3).

Scores of methods have scales of their own, and attention sums to 1 in long texts too. So of word i of a text with n
words and scores s its *share* is taken,

    r_i = n |s_i| / Σ_j |s_j|,

of which 1 is an even one. The importance of a word is the mean share of its occurrences; with m_t of them in text t
and R_t the sum of their shares, it is R = Σ_t R_t / Σ_t m_t. Occurrences in one text are no independent
observations, so texts are what varies: the interval is Student's t over the k texts that have the word, with the
linearised variance of a ratio (Cochran 1977, equation 6.13),

    se² = k / (k − 1) · Σ_t (R_t − R m_t)² / (Σ_t m_t)²,    R ± t_{k−1} se.

A text in which some method gives every word 0 has no shares there, and is left out under all methods: means are then of
the same texts. A word of one text has no interval.
"""

from collections.abc import Sequence

import polars as pl
from scipy import special

LEAST = 5  # texts that must have a word, before its mean is told
LEVEL = 0.95
NUMBERS = ("mean", "low", "high", "less", "less_low", "less_high")


def over_words(frame: pl.DataFrame, methods: Sequence[str]) -> pl.DataFrame:
    """A row per word and method: texts and count, the mean share with its interval; the most frequent words first.

    The frame has `example`, `words` and a list of scores per method. `less` is how much more the first of the methods
    gives the word than this one does, paired by occurrence, with its interval.
    """
    single = frame.select("example", "words", *map(_shares, methods)).explode("words", *methods)
    told = single.filter(pl.all_horizontal(pl.col(methods).is_finite()).all().over("example"))
    each = [_of_method(told, name, methods[0]).with_columns(order=place) for place, name in enumerate(methods)]
    in_order = pl.concat(each).sort("count", "word", "order", descending=[True, False, False])
    return in_order.select("word", "method", "texts", "count", *NUMBERS)


def count_told_texts(frame: pl.DataFrame, methods: Sequence[str]) -> int:
    """The texts in which every method says something."""
    sizes = [pl.col(name).list.eval(pl.element().abs()).list.sum() for name in methods]
    return frame.filter(*((size.is_finite() & (size > 0)) for size in sizes)).height


def _shares(name: str) -> pl.Expr:
    return pl.col(name).list.eval(pl.element().abs() * pl.len() / pl.element().abs().sum())


def _of_method(told: pl.DataFrame, name: str, first: str) -> pl.DataFrame:
    """Of one method, and how far the first is above it."""
    columns = {"mean": pl.col(name), "less": pl.col(first) - pl.col(name)}
    by_text = told.group_by("words", "example").agg(
        pl.len().alias("times"), *(values.sum().alias(column) for column, values in columns.items())
    )
    ratios = [part for column in columns for part in _ratio(column)]
    sums = by_text.group_by(word="words").agg(pl.len().alias("texts"), pl.col("times").sum().alias("count"), *ratios)
    found = _bounded(sums).with_columns(method=pl.lit(name), low=pl.col("low").clip(lower_bound=0.0))
    return found.with_columns(pl.lit(None, pl.Float64).alias(n) for n in NUMBERS[3:]) if name == first else found


def _ratio(column: str) -> tuple[pl.Expr, pl.Expr]:
    """The mean over occurrences, and its standard error over texts; NaN with a single text."""
    times, k = pl.col("times"), pl.len().cast(pl.Float64)
    mean = pl.col(column).sum() / times.sum()
    squares = (pl.col(column) - mean * times).pow(2).sum() / times.sum().pow(2)
    return mean.alias(column), (squares * k / (k - 1)).sqrt().alias(f"{column}_error")


def _bounded(sums: pl.DataFrame) -> pl.DataFrame:
    """Every mean between its bounds: t standard errors on either side, nothing where a word has one text."""
    t = pl.Series(special.stdtrit(sums["texts"].to_numpy() - 1.0, (1 + LEVEL) / 2))
    half = {column: (pl.col(f"{column}_error") * t).fill_nan(None) for column in ("mean", "less")}
    return sums.select(
        "word", "texts", "count", "mean", "less",
        low=pl.col("mean") - half["mean"], high=pl.col("mean") + half["mean"],
        less_low=pl.col("less") - half["less"], less_high=pl.col("less") + half["less"],
    )  # fmt: skip
