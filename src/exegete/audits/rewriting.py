"""Rewriting: what the audit asks of experiments that put other weights in the place of attention.

*Used* and *unique* are about the model at hand. *Needed*, *stable*, *informative* and *hard to fake* are about the way
it was trained: they need more trainings, and a few seeds don't settle them.

Two of them are shares of a divergence: 1 − mean JSD / mean JSD after permuting one of the two. Flat weights are near
all others, so a small JSD alone says little (PROTOCOLS 16). A share of 1: the same weights; 0: as unlike as unrelated
ones. It is a ratio of means: of one text alone the divisor may be near 0.
"""

import math
from typing import Any

import polars as pl
from torch import Tensor

from exegete.audits.asked import Asked, by_seed
from exegete.audits.scorecard import Criteria
from exegete.experiments.common.translating import lost
from exegete.experiments.necessity.table import is_translation, own_of
from exegete.measures.ratios import linearised

EQUAL = 0.05  # mean TVD up to which two models predict the same (Jain & Wallace 2019)
ALIKE = 0.1  # normalised entropies up to which two attentions are equally flat
TEXTS = 20  # that a comparison needs at least
SWAY = 0.5  # change of a logit that is no trifle, however little a saturated probability moves


def permutation(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """Median TVD under permuted weights: 0 where the decoder doesn't read them."""
    test = criteria.used
    values, logits = (by_seed(group.with_columns(value=column)) for column in ("median_tvd", "median_logit"))
    small, moved = float(values.nanmean()) < test.margin, float(logits.nanmean())
    doubt = f"probabilities are saturated: logits change by {moved:.2f}" if small and moved > SWAY else ""
    return [Asked("used", task, model, test, values, test.margin, 0.0, 1.0, "permuted weights", doubt)]


def importance_sets(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """The share of weights removed before the decision flips: in random order, less in attention's own.

    Not against the gradient's order: it knows which class a weight speaks for, and so flips the decision sooner even of
    a model that is faithful by construction. A text whose decision nothing flips counts as 1 in both.
    """
    if not {"attention", "random"} <= set(group["scheme"]):
        return []
    own, shuffled = (by_seed(group, scheme=scheme) for scheme in ("attention", "random"))
    test = criteria.ranks_decisions
    return [Asked("ranks_decisions", task, model, test, shuffled - own, test.margin, 0.0, 1.0, "random order")]


def adversary_search(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """ε-max JSD below that of a model that is faithful by construction, on the same texts; the strictest ε.

    Flat attention has adversaries further away, so only texts count on which both are about equally flat.
    """
    strict = group.filter(pl.col("epsilon") == min(asked.epsilons))
    if "faithful" not in strict["who"]:  # nothing to hold it against
        return []
    jsd, entropy = (_by_who(strict, column) for column in ("jsd", "entropy"))
    alike = (entropy["faithful"] - entropy["model"]).abs() <= ALIKE
    values = (jsd["faithful"] - jsd["model"]).where(alike, math.nan)
    chance = (jsd["faithful"] - jsd["unfaithful"]).where(alike, math.nan).nanmean() if "unfaithful" in jsd else math.nan
    few = int(alike.sum(1).min()) < TEXTS
    doubt = "its attention is much flatter, or sharper, than that of the faithful model" if few else ""
    test, against = criteria.unique, "a model that is faithful by construction"
    return [Asked("unique", task, model, test, values, -test.margin, float(chance), 1.0, against, doubt)]


def _by_who(group: pl.DataFrame, column: str) -> dict[str, Tensor]:
    filled = group.with_columns(value=column)
    return {who: by_seed(filled, who=who) for who in group["who"].unique(maintain_order=True)}


def necessity(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """Accuracy lost by a model that learnt with uniform weights; of a translator BLEU, as a share of 100."""
    kept = group.filter(pl.col("condition") == "uniform", pl.col("when") == "training")
    if kept.is_empty():
        return []
    test = criteria.needed
    if is_translation(kept):
        values = lost(kept, own_of(kept, group)) / 100
    else:
        values = by_seed(kept.with_columns(value=-pl.col("value").cast(pl.Float64)))
    return [Asked("needed", task, model, test, values, test.margin, 0.0, 1.0, "uniform weights", recipe=True)]


def seed_stability(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:  # noqa: ARG001
    """1 − JSD / permuted JSD of every model with those of other seeds; the trainings are the models, not the pairs."""
    means = group.group_by("seed", "example", maintain_order=True).agg(pl.col("jsd", "permuted_jsd").mean())
    test, values = criteria.stable, _share(means)
    return [Asked("stable", task, model, test, values, test.margin, 0.0, math.inf, "other seeds", recipe=True)]


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
    """1 − JSD / permuted JSD of the trained adversary that gets furthest with the same predictions.

    Of several it is chosen on every other text and judged on the rest. If none predicts the same, nothing is known: a
    longer training might.
    """
    trained = group.filter(pl.col("kind").is_in(["unfrozen", "frozen"]))
    if trained.is_empty():
        return []
    found = trained.with_columns(adversary=pl.format("{} {}", "kind", "lam"))
    several = found["adversary"].n_unique() > 1
    best = _furthest(found.filter(pl.col("example") % 2 == 0) if several else found)
    judged = found.filter(pl.col("example") % 2 == 1) if several and best else found
    values = _share(judged.filter(pl.col("adversary") == (best or found["adversary"][0])))
    doubt = "" if best else f"no adversary predicts the same (mean TVD ≤ {EQUAL})"
    test, against = criteria.hard_to_fake, f"adversary {best}" if best else "a trained adversary"
    return [Asked("hard_to_fake", task, model, test, values, test.margin, 0.0, math.inf, against, doubt, recipe=True)]


def _furthest(rows: pl.DataFrame) -> str | None:
    """The adversary of the largest mean JSD among those that predict the same with every seed."""
    by_seed = rows.group_by("adversary", "seed", maintain_order=True).agg(pl.col("tvd", "jsd").mean())
    means = by_seed.group_by("adversary", maintain_order=True).agg(pl.col("tvd").max(), pl.col("jsd").mean())
    same = means.filter(pl.col("tvd") <= EQUAL).sort("jsd", descending=True, maintain_order=True)
    return None if same.is_empty() else str(same["adversary"][0])


def _share(rows: pl.DataFrame) -> Tensor:
    """1 − mean JSD / mean permuted JSD as values by text, [seed, example]; none where permuting changes nothing."""
    jsd, permuted = (by_seed(rows.with_columns(value=column)) for column in ("jsd", "permuted_jsd"))
    return 1 - linearised(jsd, permuted)
