"""What is told of readings: the summary of rows, and the values that an audit judges, by reading and specification."""

import math
from typing import Any, NamedTuple

import polars as pl
from torch import Tensor

from exegete.experiments.common.statistic import by_seed
from exegete.experiments.common.summaries import by_keys, or_none
from exegete.experiments.mediation.experiment import SPECIFICATION, TEST
from exegete.experiments.mediation.statistics import VOID, neutral, specification_name
from exegete.experiments.readings.experiment import BASELINE, NUMBERS
from exegete.measures.bounds import bounded_mean

WHERE = ("reading", "kind", "site", "head", "query", "left_out")
KEYS = ("task", "model", "on", *SPECIFICATION, *WHERE)


def summarise_readings(rows: pl.DataFrame) -> pl.DataFrame:
    """By split, specification and reading: means over texts that are not void, with their intervals."""
    return by_keys(rows, KEYS, _numbers)


def _numbers(group: pl.DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = {
        "seeds": group["seed"].n_unique(), "n": group.filter(~pl.col("void")).height,
        "void": or_none(group["void"].mean()),
    }  # fmt: skip
    for name in NUMBERS:
        interval = bounded_mean(by_seed(_valued(group, name)), 0.025)
        found |= {name: or_none(interval.mean)}
        found |= {f"{name}_low": or_none(interval.low), f"{name}_high": or_none(interval.high)}
    return found


def _valued(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.with_columns(value=pl.when(~pl.col("void")).then(pl.col(name)))


class ReadingValues(NamedTuple):
    """What one reading of one model found on the texts that judge, and how it did where readings are chosen."""

    said: dict[str, Any]  # reading, kind, site, head, query, left_out
    values: dict[str, dict[str, Tensor]]  # ranks, reads, carried: by specification and seed, [1, example]
    void: dict[str, str]  # specifications that don't count, and why
    level: dict[str, float]  # ranks, reads, carried where readings are chosen: the mean over texts


def by_reading(rows: pl.DataFrame) -> list[ReadingValues]:
    """Every reading of one model, in its order, and the baselines, of which there is only Γ."""
    groups = rows.partition_by("reading", maintain_order=True)
    return [_values(group, ("ranks",) if group["kind"][0] == BASELINE else NUMBERS) for group in groups]


def _values(rows: pl.DataFrame, names: tuple[str, ...]) -> ReadingValues:
    judging = rows.filter(pl.col("on") == TEST, neutral()).partition_by([*SPECIFICATION, "seed"], as_dict=True)
    several = rows["seed"].n_unique() > 1
    parts = {_named(key, several): part for key, part in judging.items()}
    shares = {name: float(part["void"].mean() or 0.0) for name, part in parts.items()}  # type: ignore[arg-type]
    first = rows.filter(pl.col("on") != TEST, ~pl.col("void"))
    asked = [name for name in names if any(part[name].is_not_null().any() for part in parts.values())]
    return ReadingValues(
        {name: rows[name][0] for name in WHERE},
        {name: {spec: by_seed(_valued(part, name)) for spec, part in parts.items()} for name in asked},
        {name: VOID.format(share=share) for name, share in shares.items() if share > 0.5},
        {name: _mean(first, name) for name in asked},
    )


def _named(key: tuple[Any, ...], several: bool) -> str:
    """A specification in words; of several fine-tunings each is one of its own: what is said must hold in all."""
    *specification, seed = map(str, key)
    return specification_name(*specification) + (f", seed {seed}" if several else "")


def _mean(rows: pl.DataFrame, name: str) -> float:
    value = rows[name].mean()
    return math.nan if value is None else float(value)  # type: ignore[arg-type]
