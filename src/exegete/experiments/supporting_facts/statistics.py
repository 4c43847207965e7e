"""What the audit asks of supporting sentences: are they found where the model answers right?"""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, by_seed, mean_chance, precision


def finds_facts(found: Evidence) -> Measured | None:
    """Precision at k of attention for the sentences that a question needs."""
    own = precision(found.rows)
    if own is None:
        return None
    right = own.with_columns(pl.when("correct").then("value"))
    return Measured(by_seed(right), mean_chance(right), "supporting sentences")
