"""The numbers of adversary training: how far attention got, at what price, beside the tables that were published."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from exegete.experiments.adversary_training.experiment import FROZEN, SEARCHED, TOLERANCES, UNFROZEN
from exegete.experiments.common.summaries import number
from exegete.experiments.common.tallies import SAME, by_seed, clipped, f1_by_seed, of_tasks

CELL = ("task", "model", "split")
KEYS = (*CELL, "kind", "lam", "tolerance")
UNDEFINED = {"lam": pl.Float64, "tolerance": pl.Float64, "ratio": pl.Float64} | {
    f"{name}{end}": pl.Float64 for name in ("tvd", "jsd", "permuted_jsd", "difference") for end in ("", "_low", "_high")
}
LEAST = {"difference": -1.0}  # that a number can be, otherwise 0
MOST = {"jsd": math.log(2), "permuted_jsd": math.log(2)}  # otherwise 1


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """By kind, λ and tolerance: means over texts (and seeds) with intervals; other seeds are one kind, their mean.

    undefined counts texts of one key, or without weights, which have no divergence. ratio is JSD over permuted JSD: 0
    for the same weights, about 1 for weights that have nothing in common but their shape. F1 is that of the second
    class of two, and the mean over the task's gold classes where there are more. difference is the adversary's accuracy
    less the base's.
    """
    found = [
        dict(zip(KEYS, key, strict=True)) | _numbers(group, classes)
        for classes, part in of_tasks(rows)
        for key, group in part.partition_by(KEYS, as_dict=True, maintain_order=True).items()
    ]
    return pl.DataFrame(found, schema_overrides=UNDEFINED, infer_schema_length=None)


def _numbers(group: pl.DataFrame, classes: Sequence[str]) -> dict[str, Any]:
    difference = pl.col("adversary_correct").cast(pl.Float64) - pl.col("correct").cast(pl.Float64)
    values = ["tvd", "jsd", "permuted_jsd", "difference"]
    texts = group.with_columns(difference=difference).group_by("seed", "example", maintain_order=True)
    each = texts.agg(pl.col(values).mean(), pl.col("n").first())
    said: dict[str, Any] = {
        "seeds": each["seed"].n_unique(),
        "n": each.height,
        "undefined": each["jsd"].null_count(),
    }
    for name in values:
        said |= _interval(name, each)
    permuted = said["permuted_jsd"]
    said["ratio"] = said["jsd"] / permuted if permuted is not None and permuted > SAME else None
    said |= {f"within_{t:g}": float((group["tvd"] <= t).mean()) for t in TOLERANCES}  # type: ignore[arg-type]
    for who, prefix in (("base", ""), ("adversary", "adversary_")):
        said[f"{who}_accuracy"] = number(group[f"{prefix}correct"].mean())
        said[f"{who}_f1"] = _f1(group, f"{prefix}predicted", classes)
    return said


def _interval(name: str, each: pl.DataFrame) -> dict[str, float | None]:
    found = clipped(by_seed(each, pl.col(name)), LEAST.get(name, 0.0), MOST.get(name, 1.0))
    return {name: found["mean"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def _f1(group: pl.DataFrame, predicted: str, classes: Sequence[str]) -> float:
    """F1 of the positive class or the mean over classes; the mean over all models (seeds, and other seeds)."""
    models = group.partition_by("seed", "other", maintain_order=True)
    return sum(float(f1_by_seed(model, predicted, classes).nanmean()) for model in models) / len(models)


def wiegreffe_pinter(found: pl.DataFrame) -> pl.DataFrame:
    """F1, TVD and JSD of every adversary; TVD as it is, and halved, as the authors print it."""
    kept = found.filter(pl.col("kind") != SEARCHED)
    return kept.select(
        *CELL, "kind", "lam", "seeds", "n", "base_f1", f1="adversary_f1", tvd="tvd", tvd_low="tvd_low",
        tvd_high="tvd_high", tvd_halved=pl.col("tvd") / 2, jsd="jsd", jsd_low="jsd_low", jsd_high="jsd_high",
        permuted_jsd="permuted_jsd", undefined="undefined",
    )  # fmt: skip


def meister_5(found: pl.DataFrame) -> pl.DataFrame:
    """JSD, accuracy and its difference to the base's, frozen and unfrozen (Meister et al. 2021, table 5)."""
    kept = found.filter(pl.col("kind").is_in([FROZEN, UNFROZEN]))
    return kept.select(
        *CELL, "kind", "lam", "seeds", "n", "jsd", "jsd_low", "jsd_high", "base_accuracy",
        accuracy="adversary_accuracy", difference="difference", difference_low="difference_low",
        difference_high="difference_high", undefined="undefined",
    )  # fmt: skip
