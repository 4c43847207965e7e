"""What the audit asks of agreement.

"Better than chance" says little with many texts, so what decides is non-inferiority: does attention agree with the
other importances nearly as well as they agree with each other? Sparse attention ties many words, and ties cap τ-b; so
the same is asked of τ-b as a share of what its ties allow.
"""

from itertools import combinations

import polars as pl
import torch
from torch import Tensor

from exegete.base.names import parse
from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.common.statistic import Evidence, Measured, by_seed


def agrees(found: Evidence) -> Measured | None:
    """Mean τ-b of attention with the others, less theirs with each other, where there are others to agree."""
    return _as_others(found, "tau")


def agrees_beyond_ties(found: Evidence) -> Measured | None:
    """Mean τ-b of attention with the others, as a share of what its ties allow, less theirs with each other."""
    return _as_others(found, "tau_corrected")


def beats_chance(found: Evidence) -> Measured:
    """Mean τ-b of attention with the others."""
    return Measured(_with_and_among_others(found.rows, found.experiment, "tau")[0], 0.0, "noise")


def _as_others(found: Evidence, measure: str) -> Measured | None:
    ours, theirs = _with_and_among_others(found.rows, found.experiment, measure)
    if theirs is None:
        return None
    chance = -float(theirs.nanmean())  # a ranking that knows nothing has a mean τ of 0 with all others
    doubt = ""
    if -chance <= found.margin:  # within such a margin of the others noise would be, too
        doubt = "the other importances hardly agree with each other"
    elif bool(ours.isnan().all()):
        doubt = "attention gives all words of a text the same weight, and orders none"
    return Measured(ours - theirs, chance, ", ".join(_yardstick(found.experiment)[1:]), doubt)


def _with_and_among_others(group: pl.DataFrame, asked: Agreement, measure: str) -> tuple[Tensor, Tensor | None]:
    """Mean coefficient of attention with the others, and of these with each other: [seed, example] each."""
    attention, *others = compared = _yardstick(asked)
    tau = {(a, b): by_seed(group, measure=measure, first=a, second=b) for a, b in combinations(compared, 2)}
    ours = torch.stack([tau[attention, other] for other in others]).mean(0)
    theirs = [tau[pair] for pair in combinations(others, 2)]
    return ours, torch.stack(theirs).mean(0) if theirs else None


def _yardstick(asked: Agreement) -> list[str]:
    """Attention and what it is held against; scores that somebody gave are judged elsewhere, and judge nobody."""
    return [method for method in asked.against if parse(method).name != "given"]
