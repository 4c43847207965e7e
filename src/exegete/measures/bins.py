"""Bins: the four equal parts of [0, 1] by which texts are told apart, by their largest weight or by its entropy."""

import polars as pl

BINS = ("0–0.25", "0.25–0.5", "0.5–0.75", "0.75–1")


def bin_place(value: pl.Expr) -> pl.Expr:
    """Which bin a number is in, counted from 0: a border belongs to the upper bin, 1 to the last; null for none."""
    return (value * len(BINS)).floor().cast(pl.Int64).clip(0, len(BINS) - 1)


def bin_of(value: pl.Expr) -> pl.Expr:
    """The name of the bin that a number is in; null for none."""
    return bin_place(value).replace_strict(dict(enumerate(BINS)), return_dtype=pl.String)
