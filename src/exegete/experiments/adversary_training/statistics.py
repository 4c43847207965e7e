"""What the audit asks of trained adversaries: how far does one get that predicts the same?"""

import polars as pl

from exegete.experiments.common.statistic import Evidence, Measured, divergence_share

EQUAL = 0.05  # mean TVD up to which two models predict the same (Jain & Wallace 2019)
HOME = 0.01  # share of the permuted JSD below which an adversary has the model's own weights


def hard_to_fake(found: Evidence) -> Measured | None:
    """1 − JSD / permuted JSD of the trained adversary that gets furthest with the same predictions.

    Of several it is chosen on every other text and judged on the rest. If none predicts the same, nothing is known: a
    longer training might. Nor is it where the furthest came back to the model's own weights. Beside them TVD grows with
    the distance and KL with its square, so that they are a trap of every model, however easily it is faked.
    """
    trained = found.rows.filter(pl.col("kind").is_in(["unfrozen", "frozen"]))
    if trained.is_empty():
        return None
    rows = trained.with_columns(adversary=pl.format("{} {}", "kind", "lam"))
    several = rows["adversary"].n_unique() > 1
    best = _furthest(rows.filter(pl.col("example") % 2 == 0) if several else rows)
    judged = rows.filter(pl.col("example") % 2 == 1) if several and best else rows
    values = divergence_share(judged.filter(pl.col("adversary") == (best or rows["adversary"][0])))
    doubt = f"no adversary predicts the same (mean TVD ≤ {EQUAL})" if best is None else ""
    if best is not None and float(values.nanmean()) > 1 - HOME:
        doubt = f"adversary {best} came back to the model's own weights: ask with other λ"
    return Measured(values, 0.0, f"adversary {best}" if best else "a trained adversary", doubt, ratio=True)


def _furthest(rows: pl.DataFrame) -> str | None:
    """The adversary of the largest mean JSD among those that predict the same with every seed."""
    by_seed = rows.group_by("adversary", "seed", maintain_order=True).agg(pl.col("tvd", "jsd").mean())
    means = by_seed.group_by("adversary", maintain_order=True).agg(pl.col("tvd").max(), pl.col("jsd").mean())
    same = means.filter(pl.col("tvd") <= EQUAL).sort("jsd", descending=True, maintain_order=True)
    return None if same.is_empty() else str(same["adversary"][0])
