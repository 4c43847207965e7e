"""What the audit asks of weights that are removed until the decision flips."""

from exegete.experiments.common.depth import at_readout
from exegete.experiments.common.statistic import Evidence, Measured, by_seed


def ranks_decisions(found: Evidence) -> Measured | None:
    """The share of weights removed before the decision flips: in random order, less in attention's own.

    Not against the gradient's order: it knows which class a weight speaks for, and so flips the decision sooner even of
    a model that is faithful by construction. A text whose decision nothing flips counts as 1 in both.
    """
    rows = at_readout(found.rows)
    if not {"attention", "random"} <= set(rows["scheme"]):
        return None
    own, shuffled = (by_seed(rows, scheme=scheme) for scheme in ("attention", "random"))
    return Measured(shuffled - own, 0.0, "random order")
