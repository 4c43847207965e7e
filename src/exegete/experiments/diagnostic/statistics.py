"""What the audit asks of a model of single words that gets this model's weights."""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, by_seed


def informative(found: Evidence) -> Measured:
    """Accuracy that it gains with these weights instead of uniform ones."""
    rows = found.rows.with_columns(value=pl.col("correct").cast(pl.Float64))
    imposed, uniform = (by_seed(rows, weights=weights) for weights in ("imposed", "uniform"))
    return Measured(imposed - uniform, 0.0, "uniform weights")
