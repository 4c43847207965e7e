"""What the audit asks of faithfulness: AOPC of the probability, the mean over the ways to remove a word.

Attention is held against random words, and against the method that was best on texts held out for choosing it, of those
that don't erase words: methods that erase words as the evaluation does nearly optimise it.
"""

import polars as pl
import torch
from torch import Tensor

from exegete.base.names import parse
from exegete.experiments.common.statistic import Evidence, Measured, by_seed, method_named
from exegete.experiments.faithfulness.experiment import AOPC, Faithfulness
from exegete.experiments.faithfulness.leaderboard import removal_of

COMPREHENSIVENESS, SUFFICIENCY = "comprehensiveness", "sufficiency"


def beats_random(found: Evidence) -> Measured:
    """Attention's comprehensiveness, less that of random words."""
    return Measured(_of(found, "attention") - _of(found, "random"), 0.0, "random")


def faithful(found: Evidence) -> Measured | None:
    """Attention's comprehensiveness, less that of the best of the other methods on dev."""
    return _beside_the_best(found, "signed")


def faithful_by_size(found: Evidence) -> Measured | None:
    """Attention's comprehensiveness less the best other's; words are ranked by |score|, for or against the class."""
    return _beside_the_best(found, "magnitude")


def _beside_the_best(found: Evidence, ranking: str) -> Measured | None:
    winner = _best(found, ranking)
    if winner is None:
        return None
    attention, noise = _of(found, "attention"), _of(found, "random")
    best = _aopc(found.rows, winner, "test", ranking)
    chance = float((noise - best).nanmean())
    # Within such a margin of the best method random words would be, too.
    doubt = "even the best method's first words hardly matter" if -chance <= found.margin else ""
    return Measured(attention - best, chance, winner, doubt)


def sufficient(found: Evidence) -> Measured | None:
    """What the best method's first words keep of the prediction, less what attention's keep: above 0, ours are enough.

    Sufficiency is what a probability loses when only these words are left, so the best method has the smallest.
    """
    winner = _best(found, "signed", SUFFICIENCY)
    if winner is None:
        return None
    attention, random = (_of(found, name, SUFFICIENCY) for name in ("attention", "random"))
    best = _aopc(found.rows, winner, "test", measure=SUFFICIENCY)
    chance = float((best - random).nanmean())
    doubt = "even the best method's first words are hardly more than random ones" if -chance <= found.margin else ""
    return Measured(best - attention, chance, winner, doubt)


def _of(found: Evidence, name: str, measure: str = COMPREHENSIVENESS) -> Tensor:
    """A method's AOPC on the test texts, whatever its settings."""
    method = method_named(found.experiment.methods, name)
    assert method is not None
    return _aopc(found.rows, method, "test", measure=measure)


def _aopc(
    group: pl.DataFrame, method: str, split: str, ranking: str = "signed", measure: str = COMPREHENSIVENESS
) -> Tensor:
    """AOPC of the probability, the mean over removals: [seed, example]."""
    kept = group.filter(
        pl.col("method") == method, pl.col("split") == split, pl.col("ranking") == ranking,
        pl.col("measure") == measure, pl.col("fraction") == AOPC,
    )  # fmt: skip
    return torch.stack([by_seed(kept, removal=by) for by in kept["removal"].unique(maintain_order=True)]).mean(0)


def _best(found: Evidence, ranking: str, measure: str = COMPREHENSIVENESS) -> str | None:
    """The method of the highest comprehensiveness, or lowest sufficiency, on the texts for choosing."""
    group, asked = found.rows, found.experiment
    level = {
        method: float(_aopc(group, method, asked.choose_on, ranking, measure).nanmean())
        for method in _competing(group, asked, measure)
    }
    sign = -1 if measure == SUFFICIENCY else 1
    return max(level, key=lambda method: sign * level[method]) if level else None


def _competing(group: pl.DataFrame, asked: Faithfulness, measure: str) -> list[str]:
    """Not attention or random, nor what erases words as the evaluation does."""
    there = group.filter(pl.col("split") == asked.choose_on, pl.col("measure") == measure)  # given scores may not be
    return [
        method
        for method in there["method"].unique(maintain_order=True)
        if parse(method).name not in ("attention", "random") and removal_of(method) not in asked.removals
    ]
