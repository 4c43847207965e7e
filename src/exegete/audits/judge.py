"""Judging: from the rows of experiments to verdicts.

A verdict compares an interval with a margin. Verdicts are corrected for the number of tests (Holm 1979): with m of
them open every interval is at 1 − 0.05 / m; those whose interval leaves the margin are settled, and the rest are looked
at again at 1 − 0.05 / (what is left), until none is settled. What is known beforehand to be too little, by its number
of texts or seeds, is no test and doesn't count.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from exegete.audits.answer import answer
from exegete.audits.asked import Asked
from exegete.audits.asking import ASK
from exegete.audits.context import Context
from exegete.audits.goals import USERS, votes
from exegete.audits.scorecard import SEEDS_FOR_A_RECIPE, Audit, Criteria, Test, Verdict
from exegete.audits.settle import settling
from exegete.audits.untested import untestable, untested
from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean, within
from exegete.runs.study import Study

TEXTS_FOR_A_VERDICT = 20  # fewer, and percentile intervals are too narrow
ERROR = 0.05  # of all verdicts of a scorecard together
NOTHING = f"No test of attention was asked for here (the audit judges {', '.join(ASK)}): see what was found."
GUESS = "the model predicts no better than always naming the most frequent class: there is nothing to explain"


def judge(
    rows: Mapping[str, pl.DataFrame],
    study: Study,
    criteria: Criteria,
    run: Path | None = None,
    frame: pl.DataFrame | None = None,
    context: Context | None = None,
) -> Audit:
    """Every test on every task and model, from the rows of a study's experiments by name."""
    built, context = study.built_experiments(), context or Context()
    asked: list[Asked] = []
    for name in (name for name in ASK if name in rows):
        for (task, model), group in rows[name].group_by("task", "model", maintain_order=True):
            asked += ASK[name](str(task), str(model), group, built[name], criteria)
    tests = [_with_vote(test, context) for test in judged([_doubted(each, context) for each in asked])]
    tests += [_with_vote(test, context) for test in untestable(context, criteria)]
    first = next(iter(rows))
    return Audit(
        answer=answer(tests, context) if asked else NOTHING,
        tests=tuple(tests),
        criteria_version=criteria.version,
        goal=context.goal,
        user=USERS[context.goal],
        untested=tuple(untested(tests)),
        run=run,
        frame=built[first].summary(rows[first]) if frame is None else frame,
    )


def _doubted(asked: Asked, context: Context) -> Asked:
    """Where a model only guesses, no number says how it comes to its predictions."""
    prediction = context.predictions.get((asked.task, asked.model))
    return asked._replace(doubt=GUESS) if prediction is not None and prediction.is_guess else asked


def _with_vote(test: Test, context: Context) -> Test:
    return replace(test, votes=votes(test.name, context.goal))


def judged(asked: Sequence[Asked]) -> list[Test]:
    """Verdicts on all tests together (Holm)."""
    enough = [place for place, each in enumerate(asked) if _enough(each)]
    level = 1 - ERROR / max(1, len(enough))
    found = {place: _judged(each, level) for place, each in enumerate(asked)}
    left = [place for place in enough if found[place].verdict == "cannot tell"]
    while left and len(left) < len(enough):
        enough, level = left, 1 - ERROR / len(left)
        found |= {place: _judged(asked[place], level) for place in left}
        left = [place for place in left if found[place].verdict == "cannot tell"]
    return [found[place] for place in range(len(asked))]


def _enough(asked: Asked) -> bool:
    """Whether there are texts and seeds enough for any verdict."""
    texts = int((~asked.values.isnan()).sum())
    return not _few(texts, asked.seeds, asked.recipe)


def _few(texts: int, seeds: int, recipe: bool) -> bool:
    few_seeds = seeds < SEEDS_FOR_A_RECIPE and (seeds > 1 or recipe)
    return texts < TEXTS_FOR_A_VERDICT * seeds or few_seeds


def _judged(asked: Asked, level: float) -> Test:
    seeds = asked.seeds
    interval = bootstrap_mean(asked.values[0], level, draws(level)) if seeds == 1 else crossed_mean(asked.values, level)
    interval = within(interval, asked.bound)
    decided = "cannot tell" if asked.doubt else verdict(interval, asked.threshold, seeds, asked.recipe)
    open_ = decided == "cannot tell" and not asked.doubt
    return Test(
        name=asked.name,
        task=asked.task,
        model=asked.model,
        question=asked.criterion.question,
        statistic=_finite(interval.mean),
        n=interval.n,
        interval=(_finite(interval.low), _finite(interval.high)),
        level=level,
        chance=_finite(asked.chance),
        criterion=str(asked.criterion),
        verdict=decided,
        about=_about(seeds, asked.recipe),
        paper=asked.criterion.paper,
        against=asked.against,
        doubt=asked.doubt,
        settle=settling(interval, asked.threshold, seeds, asked.recipe) if open_ else "",
        threshold=asked.threshold,
    )


def draws(level: float) -> int:
    """Bootstrap samples of which 20 or more lie beyond each end of the interval."""
    return max(2000, math.ceil(40 / (1 - level)))


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _about(seeds: int, recipe: bool) -> str:
    if seeds == 1 and not recipe:
        return "this checkpoint"
    return f"this training recipe ({seeds} seed{'s' if seeds > 1 else ''})"


def verdict(interval: Interval, threshold: float, seeds: int = 1, recipe: bool = False) -> Verdict:
    """Holds if the interval lies above the threshold, fails if below; else, or with few texts or seeds, cannot tell."""
    if _few(interval.n, seeds, recipe) or math.isnan(interval.low):
        return "cannot tell"
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"
