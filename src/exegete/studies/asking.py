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

from exegete.base.names import parse
from exegete.experiments.agreement import Agreement
from exegete.experiments.faithfulness import AOPC, Faithfulness
from exegete.experiments.known_answer import KnownAnswer
from exegete.experiments.leaderboard import removal_of
from exegete.experiments.plausibility import Plausibility
from exegete.studies import rewriting
from exegete.studies.asked import Ask, Asked, by_seed
from exegete.studies.audit import Criteria


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
            chance, others = -float(theirs.nanmean()), ", ".join(asked.against[1:])
            # A difference of two τ lies in [−2, 2].
            found.append(Asked(name, task, model, criterion, ours - theirs, -criterion.margin, chance, 2.0, others))
    ours, _ = _with_and_among_others(group, asked, "tau")
    beats = criteria.beats_chance
    return [*found, Asked("beats_chance", task, model, beats, ours, beats.margin, 0.0, against="noise")]


def _with_and_among_others(group: pl.DataFrame, asked: Agreement, measure: str) -> tuple[Tensor, Tensor | None]:
    """Mean coefficient of attention with the others, and of these with each other: [seed, example] each."""
    attention, *others = asked.against
    tau = {(a, b): by_seed(group, measure=measure, first=a, second=b) for a, b in combinations(asked.against, 2)}
    ours = torch.stack([tau[attention, other] for other in others]).mean(0)
    theirs = [tau[pair] for pair in combinations(others, 2)]
    return ours, torch.stack(theirs).mean(0) if theirs else None


def faithfulness(task: str, model: str, group: pl.DataFrame, asked: Any, criteria: Criteria) -> list[Asked]:
    """Attention's comprehensiveness against random words, and against the best of the other methods on dev.

    Attention has no sign, so a word against the class may come first. The last test takes the sign from all methods.
    """
    assert isinstance(asked, Faithfulness)
    attention, noise = (_comprehensiveness(group, _named(asked.methods, n), "test") for n in ("attention", "random"))
    over = criteria.beats_random
    found = [Asked("beats_random", task, model, over, attention - noise, over.margin, 0.0, 2.0, "random")]
    for name, criterion, ranking in (
        ("faithful_as_best", criteria.faithful_as_best, "signed"),
        ("faithful_by_size", criteria.faithful_by_size, "magnitude"),
    ):
        winner = _best(group, asked, ranking)
        if winner is not None:
            best = _comprehensiveness(group, winner, "test", ranking)
            chance, difference = float((noise - best).nanmean()), attention - best
            # Within such a margin of the best method random words would be, too.
            doubt = "even the best method's first words hardly matter" if -chance <= criterion.margin else ""
            asking = Asked(name, task, model, criterion, difference, -criterion.margin, chance, 2.0, winner, doubt)
            found.append(asking)
    return found


def _has(group: pl.DataFrame, name: str) -> bool:
    """Whether a method is among those asked."""
    return any(parse(method).name == name for method in group["method"].unique())


def _named(methods: Iterable[str], name: str) -> str:
    """A method by its name, whatever its settings."""
    return next(method for method in methods if parse(method).name == name)


def _comprehensiveness(group: pl.DataFrame, method: str, split: str, ranking: str = "signed") -> Tensor:
    """AOPC of the probability, the mean over removals: [seed, example]."""
    kept = group.filter(
        pl.col("method") == method, pl.col("split") == split, pl.col("ranking") == ranking,
        pl.col("measure") == "comprehensiveness", pl.col("fraction") == AOPC,
    )  # fmt: skip
    return torch.stack([by_seed(kept, removal=by) for by in kept["removal"].unique(maintain_order=True)]).mean(0)


def _best(group: pl.DataFrame, asked: Faithfulness, ranking: str) -> str | None:
    """The method of the highest comprehensiveness on the texts for choosing, but attention and random.

    Methods that erase words as the evaluation does nearly optimise it, and don't compete.
    """
    every = [m for m in group["method"].unique(maintain_order=True) if parse(m).name not in ("attention", "random")]
    methods = [method for method in every if removal_of(method) not in asked.removals]
    level = {method: float(_comprehensiveness(group, method, asked.choose_on, ranking).nanmean()) for method in methods}
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
    kept = group.filter(pl.col("ranking") == "signed", pl.col("measure") == "precision_at_k")
    own = kept.filter(pl.col("method") == _named(kept["method"].unique(maintain_order=True), "attention"))
    obedience = own.group_by("seed").agg(pl.col("obeys").mean())["obeys"].min()  # every seed must have learnt them
    least = float(obedience) if isinstance(obedience, float) else 0.0
    doubt = f"the model obeys in only {least:.0%} of the texts" if least < asked.obedience else ""
    sure = own.with_columns(pl.when("needed").then("value"))
    chance = float(sure.filter(pl.col("value").is_not_null())["chance"].mean() or 0.0)  # type: ignore[arg-type]
    test = criteria.known_answer
    return [Asked("known_answer", task, model, test, by_seed(sure), test.margin, chance, 1.0, "planted words", doubt)]


ASK: dict[str, Ask] = {
    "agreement": agreement,
    "faithfulness": faithfulness,
    "plausibility": plausibility,
    "known_answer": known_answer,
    "permutation": rewriting.permutation,
    "adversary_search": rewriting.adversary_search,
    "necessity": rewriting.necessity,
    "seed_stability": rewriting.seed_stability,
    "diagnostic": rewriting.diagnostic,
    "adversary_training": rewriting.adversary_training,
}
