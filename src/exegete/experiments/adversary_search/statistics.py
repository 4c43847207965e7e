"""What the audit asks of searched adversaries: are they further away than those of a faithful model?"""

import math

import polars as pl
from torch import Tensor

from exegete.experiments.common.depth import at_readout
from exegete.experiments.common.statistic import Evidence, Measured, by_seed

ALIKE = 0.1  # normalised entropies up to which two attentions are equally flat
TEXTS = 20  # that a comparison needs at least
FAITHFUL = "a model that is faithful by construction"
DOUBT = (
    "its attention is much flatter, or sharper, than that of the faithful model: only {few} of {texts} texts can be "
    "compared, too few to tell"
)


def unique(found: Evidence) -> Measured | None:
    """ε-max JSD below that of a model that is faithful by construction, on the same texts; the strictest ε.

    Flat attention has adversaries further away, so only texts count on which both are about equally flat. Where these
    are few there is no number: the mean of two texts would be read as one.
    """
    strict = at_readout(found.rows).filter(pl.col("epsilon") == min(found.experiment.epsilons))
    if "faithful" not in strict["who"]:  # nothing to hold it against
        return None
    jsd, entropy = (_by_who(strict, column) for column in ("jsd", "entropy"))
    alike = (entropy["faithful"] - entropy["model"]).abs() <= ALIKE
    if (few := int(alike.sum(1).min())) < TEXTS:
        return Measured(jsd["model"] * math.nan, math.nan, FAITHFUL, DOUBT.format(few=few, texts=alike.shape[1]))
    values = (jsd["faithful"] - jsd["model"]).where(alike, math.nan)
    chance = (jsd["faithful"] - jsd["unfaithful"]).where(alike, math.nan).nanmean() if "unfaithful" in jsd else math.nan
    return Measured(values, float(chance), FAITHFUL)


def _by_who(group: pl.DataFrame, column: str) -> dict[str, Tensor]:
    filled = group.with_columns(value=column)
    return {who: by_seed(filled, who=who) for who in group["who"].unique(maintain_order=True)}
