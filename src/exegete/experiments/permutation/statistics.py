"""What the audit asks of permuted weights: does the prediction care which word carries which?"""

from exegete.experiments.common.depth import at_readout
from exegete.experiments.common.statistic import Evidence, Measured, by_seed

SWAY = 0.5  # change of a logit that is no trifle, however little a saturated probability moves


def used(found: Evidence) -> Measured:
    """Median TVD under permuted weights: 0 where the decoder doesn't read them."""
    rows = at_readout(found.rows)
    values, logits = (by_seed(rows.with_columns(value=column)) for column in ("median_tvd", "median_logit"))
    small, moved = float(values.nanmean()) < found.margin, float(logits.nanmean())
    doubt = f"probabilities are saturated: logits change by {moved:.2f}" if small and moved > SWAY else ""
    return Measured(values, 0.0, "permuted weights", doubt)
