"""What the audit asks of planted words: are they found where the model obeys them and needs every one?"""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, by_seed, mean_chance, precision


def finds_planted(found: Evidence) -> Measured | None:
    """Precision at k of attention for the planted words."""
    own = precision(found.rows)
    if own is None:
        return None
    obedience = own.group_by("seed").agg(pl.col("obeys").mean())["obeys"].min()  # every seed must have learnt them
    least = float(obedience) if isinstance(obedience, float) else 0.0
    doubt = f"the model obeys in only {least:.0%} of the texts" if least < found.experiment.obedience else ""
    sure = own.with_columns(pl.when("needed").then("value"))
    return Measured(by_seed(sure), mean_chance(sure), "planted words", doubt)
