"""Summaries: the mean of many columns of values, each with its interval, whatever was measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.measures.statistics import VALUES, Interval, bootstrap_mean, clip_interval, crossed_mean

DRAWS = 2000
TAILS = (0.025, 0.975)


class Columns(NamedTuple):
    """Values of one measure: a column per combination of keys."""

    keys: list[tuple[Any, ...]]
    values: Tensor  # [column, seed, example]; NaN where there is no value


def columns(rows: pl.DataFrame, keys: Sequence[str]) -> Columns:
    """The column `value` of tidy rows, a column per combination of keys, over all of their seeds and examples."""
    seeds, examples = (rows.select(name).unique(maintain_order=True) for name in ("seed", "example"))
    places = seeds.join(examples, how="cross", maintain_order="left_right")
    groups = rows.partition_by(keys, as_dict=True, maintain_order=True)
    found = [
        places.join(group.select("seed", "example", "value"), on=["seed", "example"], how="left", maintain_order="left")
        for group in groups.values()
    ]
    tables = [
        torch.from_numpy(f["value"].fill_null(float("nan")).to_numpy().copy()).view(len(seeds), -1) for f in found
    ]
    return Columns(list(groups), torch.stack(tables) if tables else torch.zeros(0, 1, 0, dtype=torch.float64))


def by_keys(
    rows: pl.DataFrame, keys: Sequence[str], numbers: Callable[[pl.DataFrame], Mapping[str, Any]]
) -> pl.DataFrame:
    """A row for every combination of keys, in the order of the rows: the keys, and the numbers of its group."""
    groups = rows.partition_by(keys, as_dict=True, maintain_order=True)
    found = [{**dict(zip(keys, key, strict=True)), **numbers(group)} for key, group in groups.items()]
    return pl.DataFrame(found, infer_schema_length=None)


def interval_of(values: Tensor, bound: float | None = None) -> Interval:
    """Over examples for one seed; over seeds and the examples that they share for several: [seed, example].

    Not every seed may have every example (by predicted class, say): the width is then that of the examples that all
    seeds have, around the mean of all. A value that lies in [−bound, bound] has an interval that does.
    """
    if len(values) == 1:
        return bootstrap_mean(values[0])
    shared, mean = crossed_mean(values), values.nanmean().item()
    low, high = (end + mean - shared.mean for end in (shared.low, shared.high))
    found = Interval(mean, low, high, int((~values.isnan()).sum()), shared.undefined)
    return found if bound is None else clip_interval(found, bound)


def means(
    rows: pl.DataFrame, name: str, keys: Sequence[str] = ("task", "model"), bound: float | None = None
) -> pl.DataFrame:
    """The mean of `value`, called `name`, with n and interval: a row per combination of keys."""
    found = columns(rows, keys)
    numbers = [interval_of(values, bound) for values in found.values]
    return pl.DataFrame(
        [
            dict(zip(keys, key, strict=True)) | {"n": i.n, name: i.mean, "low": i.low, "high": i.high}
            for key, i in zip(found.keys, numbers, strict=True)
        ]
    )


def intervals_of(values: Tensor) -> list[Interval]:
    """`interval_of` every column of [column, seed, example]; complete columns of one seed are resampled together."""
    count, seeds, examples = values.shape
    if seeds > 1 or not examples or bool(values.isnan().any()):
        return [interval_of(column) for column in values]
    means = resampled_means(values[:, 0].T)
    low, high = means.quantile(torch.tensor(TAILS, dtype=torch.float64), dim=0).tolist()
    mean = values.mean((1, 2)).tolist()
    return [Interval(mean[i], low[i], high[i], examples, 0) for i in range(count)]


def resampled_means(values: Tensor, draws: int = DRAWS, seed: int = 0) -> Tensor:
    """Means of samples with replacement, every column from the same samples: [example, column] -> [draw, column].

    The samples are those of `bootstrap_mean`. How often each example was drawn, times the values, is one product.
    """
    generator = torch.Generator().manual_seed(seed)
    n = len(values)
    means = torch.empty(draws, values.shape[1], dtype=torch.float64)
    for some in torch.split(means, max(1, VALUES // n)):  # views, filled in place
        picked = torch.randint(n, (len(some), n), generator=generator)
        times = torch.zeros(len(some), n, dtype=torch.float64).scatter_add_(1, picked, torch.ones_like(picked).double())
        torch.matmul(times, values / n, out=some)
    return means


def or_none(value: Any) -> float | None:
    """A float, or None for what is undefined."""
    return None if value is None or value != value else float(value)
