"""Rewriting: what the audit asks of experiments that put other weights in the place of attention.

*Used* and *unique* are about the model at hand. *Needed*, *stable*, *informative* and *hard to fake* are about the way
it was trained: they need more trainings, and a few seeds don't settle them.

Two of them are shares of a divergence: 1 − JSD / JSD after permuting one of the two. Flat weights are near all others,
so a small JSD alone says little (PROTOCOLS 16). A share of 1: the same weights; 0: as unlike as unrelated ones.
"""

from typing import Any

import polars as pl

from exegete.studies.asked import Asked, by_seed
from exegete.studies.audit import Criteria

EQUAL = 0.05  # TVD up to which two predictions count as the same (Jain & Wallace 2019)


def permutation(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """Median TVD under permuted weights: 0 where the decoder doesn't read them."""
    test = criteria.used
    values = by_seed(group.with_columns(value="median_tvd"))
    return [Asked("used", task, model, test, values, test.margin, 0.0, 1.0, "permuted weights")]


def adversary_search(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """ε-max JSD below that of a model that is faithful by construction, on the same texts; the strictest ε."""
    strict = group.filter(pl.col("epsilon") == min(asked.epsilons))
    jsd = {who: by_seed(strict.with_columns(value="jsd"), who=who) for who in strict["who"].unique(maintain_order=True)}
    if "faithful" not in jsd:  # nothing to hold it against
        return []
    test, ours = criteria.unique, jsd["model"]
    chance = float((jsd["faithful"] - jsd["unfaithful"]).nanmean()) if "unfaithful" in jsd else float("nan")
    against = "a model that is faithful by construction"
    return [Asked("unique", task, model, test, jsd["faithful"] - ours, -test.margin, chance, 1.0, against)]


def necessity(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """Accuracy lost by a model that learnt with uniform weights."""
    kept = group.filter(pl.col("condition") == "uniform", pl.col("when") == "training")
    if kept.is_empty():
        return []
    test, values = criteria.needed, by_seed(kept.with_columns(value=-pl.col("value").cast(pl.Float64)))
    return [Asked("needed", task, model, test, values, test.margin, 0.0, 1.0, "uniform weights", recipe=True)]


def seed_stability(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """1 − JSD / permuted JSD between models of other seeds; where there are several bases, their mean by other seed."""
    share = group.with_columns(value=_share("jsd")).group_by("other", "example", maintain_order=True)
    values = by_seed(share.agg(pl.col("value").mean()), by="other")
    test = criteria.stable
    return [Asked("stable", task, model, test, values, test.margin, 0.0, 1.0, "other seeds", recipe=True)]


def diagnostic(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """Accuracy that a model of single words gains when it gets this model's weights instead of uniform ones."""
    correct = {
        weights: by_seed(group.with_columns(value=pl.col("correct").cast(pl.Float64)), weights=weights)
        for weights in ("imposed", "uniform")
    }
    test, against = criteria.informative, "uniform weights"
    gain = correct["imposed"] - correct["uniform"]
    return [Asked("informative", task, model, test, gain, test.margin, 0.0, 1.0, against, recipe=True)]


def adversary_training(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """1 − JSD / permuted JSD of the trained adversary that gets furthest; other predictions are no success."""
    trained = group.filter(pl.col("kind").is_in(["unfrozen", "frozen"]))
    if trained.is_empty():
        return []
    same = trained.with_columns(value=pl.when(pl.col("tvd") <= EQUAL).then(_share("jsd")).otherwise(1.0))
    found = same.with_columns(adversary=pl.format("{} {}", "kind", "lam"))
    means = found.group_by("adversary", maintain_order=True).agg(pl.col("value").mean())
    best = means.sort("value")["adversary"][0]
    test = criteria.hard_to_fake
    values = by_seed(found, adversary=best)
    return [Asked("hard_to_fake", task, model, test, values, test.margin, 0.0, 1.0, "a trained adversary", recipe=True)]


def _share(column: str) -> pl.Expr:
    """1 − JSD / permuted JSD; undefined where permuting changes nothing."""
    chance = pl.col("permuted_jsd")
    return pl.when(chance > 1e-9).then(1 - pl.col(column) / chance)
