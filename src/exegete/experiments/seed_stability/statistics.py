"""What the audit asks of models that differ by seed: are their weights nearer than permuted ones?"""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, divergence_share


def stable(found: Evidence) -> Measured:
    """1 − JSD / permuted JSD of every model with those of other seeds; the trainings are the models, not the pairs."""
    means = found.rows.group_by("seed", "example", maintain_order=True).agg(pl.col("jsd", "permuted_jsd").mean())
    return Measured(divergence_share(means), 0.0, "other seeds", ratio=True)
