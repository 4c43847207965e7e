"""Asking: which numbers of an experiment's rows each test of the audit rests on.

*Agreement.* "Better than chance" says little with many texts, so what decides is non-inferiority: does attention agree
with the other importances nearly as well as they agree with each other? Sparse attention ties many words, and ties cap
τ-b; so the same is asked of τ-b as a share of what its ties allow.

*Faithfulness.* Comprehensiveness (AOPC of the probability), the mean over the ways to remove a word, against random
words and against the method that was best on texts held out for choosing it, of those that don't erase words.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.audits import rewriting
from exegete.audits.asked import Ask, Asked, by_seed
from exegete.audits.scorecard import Criteria
from exegete.base.names import parse
from exegete.experiments.agreement.experiment import Agreement
from exegete.experiments.faithfulness.experiment import AOPC, Faithfulness
from exegete.experiments.faithfulness.leaderboard import removal_of
from exegete.experiments.known_answer.experiment import KnownAnswer
from exegete.experiments.plausibility.experiment import Plausibility
from exegete.experiments.supporting_facts.experiment import SupportingFacts

COMPREHENSIVENESS, SUFFICIENCY = "comprehensiveness", "sufficiency"


def agreement(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Non-inferiority, raw and corrected for ties, where there are others to agree with each other; and chance."""
    assert isinstance(asked, Agreement)
    found = []
    for name, criterion, measure in (
        ("agrees", criteria.agrees, "tau"),
        ("agrees_beyond_ties", criteria.agrees_beyond_ties, "tau_corrected"),
    ):
        ours, theirs = _with_and_among_others(group, asked, measure)
        if theirs is not None:  # a ranking that knows nothing has a mean τ of 0 with all others
            chance, others = -float(theirs.nanmean()), ", ".join(_yardstick(asked)[1:])
            # Within such a margin of the others noise would be, too.
            doubt = "the other importances hardly agree with each other" if -chance <= criterion.margin else ""
            asking = Asked(name, task, model, criterion, ours - theirs, -criterion.margin, chance, 2.0, others, doubt)
            found.append(asking)  # a difference of two τ lies in [−2, 2]
    ours, _ = _with_and_among_others(group, asked, "tau")
    beats = criteria.beats_chance
    return [*found, Asked("beats_chance", task, model, beats, ours, beats.margin, 0.0, against="noise")]


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


def faithfulness(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Attention's comprehensiveness against random words, and against the best of the other methods on dev.

    Attention has no sign, so a word against the class may come first. The last test takes the sign from all methods.
    """
    assert isinstance(asked, Faithfulness)
    attention, noise = (_aopc(group, _named(asked.methods, n), "test") for n in ("attention", "random"))
    over = criteria.beats_random
    found = [Asked("beats_random", task, model, over, attention - noise, over.margin, 0.0, 2.0, "random")]
    for name, criterion, ranking in (
        ("faithful", criteria.faithful, "signed"),
        ("faithful_by_size", criteria.faithful_by_size, "magnitude"),
    ):
        winner = _best(group, asked, ranking)
        if winner is not None:
            best = _aopc(group, winner, "test", ranking)
            chance, difference = float((noise - best).nanmean()), attention - best
            # Within such a margin of the best method random words would be, too.
            doubt = "even the best method's first words hardly matter" if -chance <= criterion.margin else ""
            asking = Asked(name, task, model, criterion, difference, -criterion.margin, chance, 2.0, winner, doubt)
            found.append(asking)
    return [*found, *_sufficient(task, model, group, asked, criteria)]


def _sufficient(task: str, model: str, group: pl.DataFrame, asked: Faithfulness, criteria: Criteria) -> list[Asked]:
    """What the best method's first words keep of the prediction, less what attention's keep: above 0, ours are enough.

    Sufficiency is what a probability loses when only these words are left, so the best method has the smallest.
    """
    winner = _best(group, asked, "signed", SUFFICIENCY)
    if winner is None:
        return []
    own, noise = (_named(asked.methods, name) for name in ("attention", "random"))
    attention, random, best = (_aopc(group, method, "test", measure=SUFFICIENCY) for method in (own, noise, winner))
    test, chance = criteria.sufficient, float((best - random).nanmean())
    doubt = "even the best method's first words are hardly more than random ones" if -chance <= test.margin else ""
    return [Asked("sufficient", task, model, test, best - attention, -test.margin, chance, 2.0, winner, doubt)]


def _has(group: pl.DataFrame, name: str) -> bool:
    """Whether a method is among those asked."""
    return any(parse(method).name == name for method in group["method"].unique())


def _named(methods: Iterable[str], name: str) -> str:
    """A method by its name, whatever its settings."""
    return next(method for method in methods if parse(method).name == name)


def _aopc(
    group: pl.DataFrame, method: str, split: str, ranking: str = "signed", measure: str = COMPREHENSIVENESS
) -> Tensor:
    """AOPC of the probability, the mean over removals: [seed, example]."""
    kept = group.filter(
        pl.col("method") == method, pl.col("split") == split, pl.col("ranking") == ranking,
        pl.col("measure") == measure, pl.col("fraction") == AOPC,
    )  # fmt: skip
    return torch.stack([by_seed(kept, removal=by) for by in kept["removal"].unique(maintain_order=True)]).mean(0)


def _best(group: pl.DataFrame, asked: Faithfulness, ranking: str, measure: str = COMPREHENSIVENESS) -> str | None:
    """The method of the highest comprehensiveness, or lowest sufficiency, on the texts for choosing.

    Not attention or random; and methods that erase words as the evaluation does nearly optimise it.
    """
    there = group.filter(pl.col("split") == asked.choose_on, pl.col("measure") == measure)  # given scores may not be
    methods = [
        method
        for method in there["method"].unique(maintain_order=True)
        if parse(method).name not in ("attention", "random") and removal_of(method) not in asked.removals
    ]
    sign = -1 if measure == SUFFICIENCY else 1
    level = {m: sign * float(_aopc(group, m, asked.choose_on, ranking, measure).nanmean()) for m in methods}
    return max(level, key=level.__getitem__) if level else None


def plausibility(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Average precision of attention against what people marked, above that of a random ranking."""
    assert isinstance(asked, Plausibility)
    if not _has(group, "attention"):
        return []
    kept = group.filter(pl.col("method").str.starts_with("attention"), pl.col("measure") == "auprc")
    own = _named(kept["method"].unique(maintain_order=True), "attention")
    above = kept.with_columns(pl.col("value") - pl.col("chance"))
    test = criteria.plausible
    return [Asked("plausible", task, model, test, by_seed(above, method=own), test.margin, 0.0, 1.0, "chance")]


def known_answer(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Precision at k of attention where the model obeys planted words and needs every one of them."""
    assert isinstance(asked, KnownAnswer)
    if not _has(group, "attention"):
        return []
    own = _precision(group)
    obedience = own.group_by("seed").agg(pl.col("obeys").mean())["obeys"].min()  # every seed must have learnt them
    least = float(obedience) if isinstance(obedience, float) else 0.0
    doubt = f"the model obeys in only {least:.0%} of the texts" if least < asked.obedience else ""
    sure = own.with_columns(pl.when("needed").then("value"))
    chance = _mean_chance(sure)
    test = criteria.known_answer
    return [Asked("known_answer", task, model, test, by_seed(sure), test.margin, chance, 1.0, "planted words", doubt)]


def supporting_facts(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Precision at k of attention for the sentences that a question needs, where the model answers right."""
    assert isinstance(asked, SupportingFacts)
    if not _has(group, "attention"):
        return []
    own = _precision(group)
    right = own.with_columns(pl.when("correct").then("value"))
    test, chance = criteria.finds_facts, _mean_chance(right)
    against = "supporting sentences"
    return [Asked("finds_facts", task, model, test, by_seed(right), test.margin, chance, 1.0, against)]


def _precision(group: pl.DataFrame) -> pl.DataFrame:
    """Attention's precision at k, text by text."""
    kept = group.filter(pl.col("ranking") == "signed", pl.col("measure") == "precision_at_k")
    return kept.filter(pl.col("method") == _named(kept["method"].unique(maintain_order=True), "attention"))


def _mean_chance(rows: pl.DataFrame) -> float:
    """What a random order would score, on the texts that count."""
    return float(rows.filter(pl.col("value").is_not_null())["chance"].mean() or 0.0)  # type: ignore[arg-type]


ASK: dict[str, Ask] = {
    "agreement": agreement,
    "faithfulness": faithfulness,
    "plausibility": plausibility,
    "known_answer": known_answer,
    "supporting_facts": supporting_facts,
    "permutation": rewriting.permutation,
    "importance_sets": rewriting.importance_sets,
    "adversary_search": rewriting.adversary_search,
    "necessity": rewriting.necessity,
    "seed_stability": rewriting.seed_stability,
    "diagnostic": rewriting.diagnostic,
    "adversary_training": rewriting.adversary_training,
}
