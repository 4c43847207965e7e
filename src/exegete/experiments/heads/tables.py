"""Tables of heads: what each is worth, where it looks, whether that goes together, and the curve of pruned heads."""

from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.experiments.common.summaries import (
    DRAWS,
    TAILS,
    by_keys,
    columns,
    interval_of,
    intervals_of,
    or_none,
    resampled_means,
)
from exegete.experiments.common.tallies import clipped_mean, majority, values_by_seed
from exegete.experiments.heads.looks import LOOKS
from exegete.measures.rank import spearman
from exegete.measures.statistics import Interval

CELL = ("task", "model", "split")
PLACE = ("site", "layer", "head")
UNALTERED, PRUNED = "unaltered", "pruned"
FEW = 5  # heads, below which no order of them says anything


def head_effects(rows: pl.DataFrame) -> pl.DataFrame:
    """By way and head: seeds, n, mean loss of log-odds with its interval, accuracy, its change with its interval.

    `unaltered` is the accuracy of the model as it is, `majority` that of always the most frequent class. Intervals are
    over texts for one seed, over texts and seeds for several: seeds have the places of heads in common, not the heads.
    """
    kept = rows.filter(~pl.col("how").is_in([UNALTERED, PRUNED]))
    parts = [_effects(part, _as_it_is(rows, cell)) for cell, part in kept.group_by(CELL, maintain_order=True)]
    return pl.concat(parts)


def _as_it_is(rows: pl.DataFrame, cell: tuple[Any, ...]) -> pl.DataFrame:
    """One row per seed and text of the model as it is."""
    own = rows.filter(pl.col("how") == UNALTERED, *(pl.col(n) == c for n, c in zip(CELL, cell, strict=True)))
    return own.unique(["seed", "example"], maintain_order=True)


def _effects(part: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    keys = (*CELL, "how", *PLACE)
    loss, after = columns(part, keys), columns(part.with_columns(value="right"), keys)
    own = values_by_seed(before, pl.col("right"))
    losses, changes = intervals_of(loss.values), intervals_of(after.values - own)
    seeds, chance, unaltered = part["seed"].n_unique(), majority(before), or_none(own.nanmean())
    found = [
        dict(zip(keys, key, strict=True))
        | {"seeds": seeds, **_told(lost), "unaltered": unaltered, "accuracy": or_none(right.nanmean())}
        | _named(change, "change")
        | {"majority": chance}
        for key, lost, right, change in zip(loss.keys, losses, after.values, changes, strict=True)
    ]
    return pl.DataFrame(found, infer_schema_length=None)


def _told(interval: Interval) -> dict[str, Any]:
    ends = {name: or_none(getattr(interval, name)) for name in ("mean", "low", "high")}
    return {"n": interval.n, **ends}


def _named(interval: Interval, name: str) -> dict[str, Any]:
    own = _told(interval)
    return {name: own["mean"], f"{name}_low": own["low"], f"{name}_high": own["high"]}


def look_table(rows: pl.DataFrame) -> pl.DataFrame:
    """By head and what was measured of it as it is: n, undefined, mean and interval."""
    kept = rows.filter(pl.col("how") == UNALTERED).drop("value")
    keys = [*CELL, *PLACE, "measure"]
    long = kept.unpivot(LOOKS, index=["seed", "example", *CELL, *PLACE], variable_name="measure").filter(
        pl.col("value").is_not_null().any().over("measure")  # what was not asked has no row
    )
    found = columns(long, keys)
    numbers = zip(found.keys, intervals_of(found.values), strict=True)
    told = [
        dict(zip(keys, key, strict=True)) | {"undefined": interval.undefined, **_told(interval)}
        for key, interval in numbers
    ]
    return pl.DataFrame(told, infer_schema_length=None)


def correlations(rows: pl.DataFrame, how: str) -> pl.DataFrame:
    """Spearman's ρ, over the heads of a model, of what a head is worth with where it looks; by seed.

    What a head is worth is the mean over texts of |loss of log-odds|. Intervals resample texts: the heads are all that
    the model has. Unrelated, ρ would be 0.
    """
    keys = [*CELL, "seed", "measure"]
    found = []
    for cell, part in rows.group_by([*CELL, "seed"], maintain_order=True):
        worth = _by_head(part.filter(pl.col("how") == how).with_columns(pl.col("value").abs()), "value")
        as_it_is = part.filter(pl.col("how") == UNALTERED)
        for name in LOOKS:
            if as_it_is[name].is_not_null().any():
                own = _rho(worth, _by_head(as_it_is, name))
                found.append(dict(zip(keys, (*cell, name), strict=True)) | own)
    return pl.DataFrame(found, infer_schema_length=None)


def _by_head(part: pl.DataFrame, name: str) -> Tensor:
    """A column of one seed: [example, head]."""
    return columns(part.with_columns(value=name), PLACE).values[:, 0].T


def _rho(worth: Tensor, looks: Tensor) -> dict[str, Any]:
    """ρ of the means over texts, its interval, and how many heads and texts it is of."""
    kept = ~(worth.isnan() | looks.isnan()).any(-1)  # texts in which every head has both
    both = torch.stack([worth[kept], looks[kept]], 1)  # [example, 2, head]
    texts, heads = int(kept.sum()), worth.shape[1]
    said: dict[str, Any] = {"heads": heads, "n": texts, "rho": None, "low": None, "high": None}
    if heads < FEW or not texts:
        return said
    means = both.mean(0)
    drawn = resampled_means(both.flatten(1), DRAWS).view(-1, 2, heads)
    ends = spearman(drawn[:, 0], drawn[:, 1]).nanquantile(torch.tensor(TAILS, dtype=torch.float64)).tolist()
    rho = float(spearman(means[:1], means[1:])[0])
    return said | dict(zip(("rho", "low", "high"), map(or_none, (rho, *ends)), strict=True))


def pruning_curve(rows: pl.DataFrame) -> pl.DataFrame:
    """By order and number of pruned heads: n, accuracy and its interval, its change from the model as it is."""
    kept = rows.filter(pl.col("how") == PRUNED)
    keys = (*CELL, "order", "gone", "of")

    def told(group: pl.DataFrame) -> dict[str, Any]:
        before = _as_it_is(rows, group.select(CELL).row(0))
        own, after = (values_by_seed(part, pl.col("right")) for part in (before, group))
        change = interval_of(after - own, 1.0)
        return {
            **clipped_mean(after),
            "unaltered": or_none(own.nanmean()),
            **_named(change, "change"),
            "majority": majority(before),
        }

    return by_keys(kept, keys, told)
