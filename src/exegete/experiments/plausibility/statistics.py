"""What the audit asks of plausibility: average precision against what people marked, above that of a random ranking."""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, by_seed, method_named


def plausible(found: Evidence) -> Measured | None:
    """Attention's average precision, less chance."""
    kept = found.rows.filter(pl.col("measure") == "auprc")
    own = method_named(kept["method"].unique(maintain_order=True), "attention")
    if own is None:
        return None
    return Measured(by_seed(kept.with_columns(pl.col("value") - pl.col("chance")), method=own), 0.0, "chance")
