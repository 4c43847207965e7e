"""Judging: from the rows of experiments to verdicts.

A verdict compares an interval with a margin. The intervals of a scorecard hold jointly: each is at
1 − 0.05 / number of tests (Bonferroni).
"""

import math
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean, within
from exegete.studies.answering import answer
from exegete.studies.asked import Asked
from exegete.studies.asking import ASK
from exegete.studies.audit import SEEDS_FOR_A_RECIPE, Audit, Criteria, Test, Verdict
from exegete.studies.study import Study

TEXTS_FOR_A_VERDICT = 20  # fewer, and percentile intervals are too narrow
ERROR = 0.05  # of all intervals of a scorecard together
NOTHING = f"No test of attention was asked for here (the audit judges {', '.join(ASK)}): see what was found."


def judge(
    rows: Mapping[str, pl.DataFrame],
    study: Study,
    criteria: Criteria,
    run: Path | None = None,
    frame: pl.DataFrame | None = None,
) -> Audit:
    """Every test on every task and model, from the rows of a study's experiments by name."""
    built = study.built_experiments()
    asked: list[Asked] = []
    for name in (name for name in ASK if name in rows):
        for (task, model), group in rows[name].group_by("task", "model", maintain_order=True):
            asked += ASK[name](str(task), str(model), group, built[name], criteria)
    tests = [_judged(test, level=1 - ERROR / len(asked)) for test in asked]
    first = next(iter(rows))
    frame = built[first].summary(rows[first]) if frame is None else frame
    return Audit(answer(tests) if tests else NOTHING, tuple(tests), criteria.version, run, frame)


def _judged(asked: Asked, level: float) -> Test:
    seeds = len(asked.values)
    interval = bootstrap_mean(asked.values[0], level, draws(level)) if seeds == 1 else crossed_mean(asked.values, level)
    interval = within(interval, asked.bound)
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
        verdict="cannot tell" if asked.doubt else verdict(interval, asked.threshold, seeds, asked.recipe),
        about=_about(seeds, asked.recipe),
        paper=asked.criterion.paper,
        against=asked.against,
        doubt=asked.doubt,
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
    few_seeds = seeds < SEEDS_FOR_A_RECIPE and (seeds > 1 or recipe)
    few = interval.n < TEXTS_FOR_A_VERDICT * seeds or few_seeds
    if few or math.isnan(interval.low):
        return "cannot tell"
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"
