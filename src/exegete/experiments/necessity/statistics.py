"""What the audit asks of models without attention: what does one lose that learnt with uniform weights?"""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, by_seed
from exegete.experiments.common.translations import bleu_loss
from exegete.experiments.necessity.table import is_translation, own_of


def needed(found: Evidence) -> Measured | None:
    """Accuracy lost; of a translator BLEU, as a share of 100."""
    kept = found.rows.filter(pl.col("condition") == "uniform", pl.col("when") == "training")
    if kept.is_empty():
        return None
    if is_translation(kept):
        values = bleu_loss(kept, own_of(kept, found.rows)) / 100
    else:
        values = by_seed(kept.with_columns(value=-pl.col("value").cast(pl.Float64)))
    return Measured(values, 0.0, "uniform weights")
