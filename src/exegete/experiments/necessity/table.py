"""Vashishth's tables: what attention is worth, tasks side by side (Vashishth et al. 2019, tables 1 to 3)."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from exegete.experiments.common.translations import COLUMNS, bleu_change, bleu_scores

INFERENCE, TRAINING = "inference", "training"
OWN, BOTH = "own attention", "training and inference"


def own_of(group: pl.DataFrame, every: pl.DataFrame) -> pl.DataFrame:
    """The translations of the same models as they are."""
    return every.filter(pl.col("condition") == OWN).join(group, on=["task", "model", "seed", "example"], how="semi")


def vashishth(rows: pl.DataFrame) -> pl.DataFrame:
    """Vashishth's tables 1 to 3: accuracy or BLEU of the model, then absolute changes, in points; tasks side by side.

    Each task has a mean over seeds and (±) their standard deviation, null for one seed.
    """
    from exegete.report.labels import model_labels, task_labels

    tasks, models = task_labels(rows["task"]), model_labels(rows["model"])
    keys = ["task", "model", "condition", "when"]
    means = pl.DataFrame(list(_points(rows)), infer_schema_length=None, orient="row")
    numbers = means.group_by(keys, maintain_order=True).agg(
        pl.col("value").mean(), pl.col("value").std().alias("std"), pl.len().alias("seeds")
    )
    table = numbers.select("model", "condition", "when").unique(maintain_order=True)
    for task, label in tasks.items():
        part = (
            numbers.filter(pl.col("task") == task).drop("task", "seeds").rename({"value": label, "std": f"{label} ±"})
        )
        table = table.join(part, on=["model", "condition", "when"], how="left", maintain_order="left")
    return table.with_columns(pl.col("model").replace_strict(models)).sort("model", maintain_order=True)


def _points(rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """By task, model and seed: how good the model is, then its change under every condition, all in points."""
    for (task, model, seed), own in rows.group_by("task", "model", "seed", maintain_order=True):
        said = {"task": task, "model": model, "seed": seed}
        first, *_ = groups = [(key, group) for key, group in own.group_by("condition", "when", maintain_order=True)]
        yield said | {"condition": OWN, "when": "", "value": _level(first[1])}
        for (condition, when), group in groups:
            if condition != OWN:
                shown = BOTH if when == TRAINING else when
                yield said | {"condition": condition, "when": shown, "value": _change(group, own)}


def _level(group: pl.DataFrame) -> Any:
    """Accuracy in per cent, or BLEU, with the model's own attention; a translator's first condition is that."""
    if is_translation(group):
        return bleu_scores(group)["mean"]
    return 100 * group["correct"].cast(pl.Float64).mean()  # type: ignore[operator]


def _change(group: pl.DataFrame, every: pl.DataFrame) -> Any:
    """Of accuracy or BLEU, in points."""
    if is_translation(group):
        return bleu_change(group, own_of(group, every))["change"]
    return 100 * group["value"].mean()  # type: ignore[operator]


def is_translation(group: pl.DataFrame) -> bool:
    """Whether rows tell of translations rather than of classes."""
    return COLUMNS[0] in group.columns and group[COLUMNS[0]].null_count() == 0
