"""Tallies: F1 over the same classes everywhere, written again slowly, and intervals that end where values do."""

import math

import polars as pl
import pytest
import torch

from exegete.experiments.adversary_training.experiment import summarise_adversaries as adversaries
from exegete.experiments.common.tallies import (
    clipped_mean,
    f1_by_seed,
    majority,
    mean_with_interval,
    of_tasks,
    values_by_seed,
)
from exegete.experiments.diagnostic.experiment import Diagnostic
from exegete.experiments.necessity.experiment import Necessity
from exegete.measures.bins import BINS, bin_of
from exegete.training.metrics import all_metrics

GOLD = ["x", "y", "x", "y", "x", "y"]
OWN = ["x", "y", "x", "x", "x", "y"]
OTHER = ["x", "z", "z", "y", "w", "y"]  # z and w are classes that no text has
PLACE = {name: i for i, name in enumerate("wxyz")}


def slow_macro(predicted: list[str], gold: list[str]) -> float:
    """2 · both / (predicted + gold), the mean over the classes that are gold."""
    classes = sorted(set(gold))
    parts = []
    for c in classes:
        both = sum(p == g == c for p, g in zip(predicted, gold, strict=True))
        parts.append(2 * both / (predicted.count(c) + gold.count(c)))
    return sum(parts) / len(classes)


def frame(**columns: object) -> pl.DataFrame:
    where = {"task": "t", "model": "m", "seed": 0, "split": "test", "example": list(range(6)), "n": 3, "gold": GOLD}
    return pl.DataFrame(where | columns).with_columns(positive=pl.lit(None, pl.String))


def test_one_macro_f1_everywhere() -> None:
    own, other = slow_macro(OWN, GOLD), slow_macro(OTHER, GOLD)
    assert own > other
    right = {"correct": [int(a == b) for a, b in zip(OWN, GOLD, strict=True)]}
    wrong = [int(a == b) for a, b in zip(OTHER, GOLD, strict=True)]

    necessity = frame(predicted=OWN, altered_predicted=OTHER, altered_correct=wrong, condition="uniform", **right)
    rows = necessity.with_columns(when=pl.lit("training"), value=pl.col("altered_correct") - pl.col("correct"))
    (found,) = Necessity().summary(rows.with_columns(pl.col("value").cast(pl.Float64))).to_dicts()
    assert (found["f1_before"], found["f1_after"]) == pytest.approx((own, other))
    assert found["f1_change"] == pytest.approx(other - own)

    parts = [
        frame(weights=name, predicted=said, correct=ok)
        for name, said, ok in (("base", GOLD, [1] * 6), ("imposed", OTHER, wrong), ("own", OWN, right["correct"]))
    ]
    level = {
        (row["weights"], row["against"]): row["mean"]
        for row in Diagnostic().summary(pl.concat(parts)).filter(measure="f1").to_dicts()
    }
    assert level["own", ""] == pytest.approx(own)
    assert level["imposed", "own"] == pytest.approx(other - own)

    adversary = frame(predicted=OWN, adversary_predicted=OTHER, kind="frozen", lam=0.1, tvd=0.1, jsd=0.1, **right)
    types = {"other": pl.lit(None, pl.Int64), "tolerance": pl.lit(None, pl.Float64), "permuted_jsd": pl.lit(0.2)}
    (said,) = adversaries(adversary.with_columns(adversary_correct=pl.Series(wrong), **types)).to_dicts()
    assert (said["base_f1"], said["adversary_f1"]) == pytest.approx((own, other))

    logits = torch.nn.functional.one_hot(torch.tensor([PLACE[c] for c in OTHER]), 4).double()
    metrics = all_metrics(logits, torch.tensor([PLACE[c] for c in GOLD]))
    assert metrics["macro_f1"] == pytest.approx(other)


def test_the_classes_are_those_of_the_task_not_of_a_group() -> None:
    rows = pl.concat([frame(predicted=OWN), frame(predicted=OWN).with_columns(task=pl.lit("u"), gold=pl.lit("z"))])
    assert [classes for classes, _ in of_tasks(rows)] == [["x", "y"], ["z"]]
    few = frame(predicted=OWN).filter(pl.col("gold") == "x")
    both, one = (f1_by_seed(few, "predicted", classes).mean().item() for classes in (["x", "y"], ["x"]))
    assert (both, one) == pytest.approx((0.5, 1.0))  # y is neither there nor predicted among these: 0


def test_a_text_that_one_seed_lacks_counts_for_the_other_alone() -> None:
    first = frame(predicted=OWN)
    both = pl.concat([first, first.with_columns(seed=pl.lit(1)).head(4)])
    values = f1_by_seed(both, "predicted", ["x", "y"])
    assert values.isnan().sum().item() == 2
    each = [slow_macro(OWN, GOLD), slow_macro(OWN[:4], GOLD[:4])]
    assert values.nanmean(-1).tolist() == pytest.approx(each)
    assert values_by_seed(both, pl.lit(2)).nansum().item() == 2 * 10


def test_intervals_end_where_values_do() -> None:
    values = torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]]).double()
    found = clipped_mean(values)
    assert (found["n"], found["mean"], found["low"], found["high"]) == (8, 0.625, 0.0, 1.0)
    wider = clipped_mean(values, -math.inf, None)
    assert wider["low"] < 0
    assert wider["high"] > 1
    nothing = mean_with_interval(frame(value=pl.Series([None] * 6, dtype=pl.Float64)), "value")
    assert (nothing["n"], nothing["undefined"], nothing["mean"], nothing["low"]) == (0, 6, None, None)


def test_bins_and_the_majority() -> None:
    at = pl.DataFrame({"x": [0.0, 0.25, 0.9, 1.0, None]}).select(bin_of(pl.col("x"))).to_series().to_list()
    assert at == [BINS[0], BINS[1], BINS[3], BINS[3], None]
    assert majority(frame().head(5)) == 3 / 5
