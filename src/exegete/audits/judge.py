"""Judging: from the rows of experiments to verdicts.

A verdict compares an interval with a margin. Verdicts are corrected for the number of tests (Holm 1979): with m of
them open every interval is at 1 − 0.05 / m; those whose interval leaves the margin are settled, and the rest are looked
at again at 1 − 0.05 / (what is left), until none is settled. What is known beforehand to be too little, by its number
of texts or seeds, is no test and doesn't count.

How many texts or seeds would turn a *cannot tell* into a verdict: intervals of means shrink as 1/√n, so one of
half-width w around a mean that lies d from the margin leaves it behind with n (w/d)² texts, if the mean stays where it
is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from exegete.audits.answer import answer, untested
from exegete.audits.context import Context
from exegete.audits.criteria import SEEDS_FOR_A_RECIPE, Criteria, Criterion
from exegete.audits.goals import USERS, votes
from exegete.audits.scorecard import Audit
from exegete.experiments.common.statistic import Evidence, Measured
from exegete.experiments.common.test import Test
from exegete.experiments.tests import declared, judged_experiments
from exegete.measures.statistics import Interval, bootstrap_mean, crossed_mean, within
from exegete.page.section import Outcome, Verdict
from exegete.runs.study import Study

TEXTS_FOR_A_VERDICT = 20  # fewer, and percentile intervals are too narrow
ERROR = 0.05  # of all verdicts of a scorecard together
NOTHING = "No test of attention was asked for here (the audit judges {}): see what was found."
GUESS = "the model predicts no better than always naming the most frequent class: there is nothing to explain"
MOST = 1_000_000  # texts that nobody will have
SPARE = 1.1  # the mean won't stay exactly where it is
Rows = Mapping[str, pl.DataFrame]


class Asked(NamedTuple):
    """A test of a model on a task before it is judged."""

    test: Test
    task: str
    model: str
    criterion: Criterion
    measured: Measured

    @property
    def seeds(self) -> int:
        """How many trainings it rests on."""
        return len(self.measured.values)

    @property
    def threshold(self) -> float:
        """What the interval is compared with."""
        return self.test.threshold(self.criterion.margin)

    @property
    def recipe(self) -> bool:
        """Whether it is about a way of training, whatever the number of seeds."""
        return self.test.about == "recipe"


def judge(
    rows: Rows,
    study: Study,
    criteria: Criteria,
    run: Path | None = None,
    frame: pl.DataFrame | None = None,
    context: Context | None = None,
) -> Audit:
    """Every test on every task and model, from the rows of a study's experiments by name."""
    context = context or Context()
    asked = [each for name in judged_experiments() if name in rows for each in _asked(name, rows, study, criteria)]
    lines = [*judged([_doubted(each, context) for each in asked]), *untestable(context, criteria)]
    voted = tuple(replace(line, votes=votes(line.name, context.goal)) for line in lines)
    first = next(iter(rows))
    return Audit(
        answer=answer(voted, context) if asked else NOTHING.format(", ".join(judged_experiments())),
        tests=voted,
        criteria_version=criteria.version,
        goal=context.goal,
        user=USERS[context.goal],
        untested=tuple(untested(voted)),
        run=run,
        frame=study.built_experiments()[first].summary(rows[first]) if frame is None else frame,
    )


def _asked(experiment: str, rows: Rows, study: Study, criteria: Criteria) -> Iterator[Asked]:
    """The tests of an experiment, of every task and model of its rows; none where others that they need are missing."""
    built, own = study.built_experiments(), [t for t in declared().values() if t.experiments[0] == experiment]
    for (task, model), _ in rows[experiment].group_by("task", "model", maintain_order=True):
        here = pl.col("task") == task, pl.col("model") == model
        for test in (test for test in own if set(test.experiments) <= set(rows)):
            frames = tuple(rows[name].filter(*here) for name in test.experiments)
            settings = tuple(built[name] for name in test.experiments)
            margin = criteria[test.name].margin
            measured = test.measured(Evidence(frames, settings, margin)) if all(map(len, frames)) else None
            if measured is not None:
                yield Asked(test, str(task), str(model), criteria[test.name], measured)


def _doubted(asked: Asked, context: Context) -> Asked:
    """Where a model only guesses, no number says how it comes to its predictions."""
    prediction = context.predictions.get((asked.task, asked.model))
    guess = prediction is not None and prediction.is_guess
    return asked._replace(measured=asked.measured._replace(doubt=GUESS)) if guess else asked


def judged(asked: Sequence[Asked]) -> list[Verdict]:
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
    texts = int((~asked.measured.values.isnan()).sum())
    return not _few(texts, asked.seeds, asked.recipe)


def _few(texts: int, seeds: int, recipe: bool) -> bool:
    few_seeds = seeds < SEEDS_FOR_A_RECIPE and (seeds > 1 or recipe)
    return texts < TEXTS_FOR_A_VERDICT * seeds or few_seeds


def _judged(asked: Asked, level: float) -> Verdict:
    seeds, (values, chance, against, doubt) = asked.seeds, asked.measured
    interval = bootstrap_mean(values[0], level, draws(level)) if seeds == 1 else crossed_mean(values, level)
    interval = within(interval, asked.test.bound)
    decided = "cannot tell" if doubt else verdict(interval, asked.threshold, seeds, asked.recipe)
    open_ = decided == "cannot tell" and not doubt
    return Verdict(
        name=asked.test.name,
        task=asked.task,
        model=asked.model,
        question=asked.criterion.question,
        statistic=_finite(interval.mean),
        n=interval.n,
        interval=(_finite(interval.low), _finite(interval.high)),
        level=level,
        chance=_finite(chance),
        criterion=str(asked.criterion),
        verdict=decided,
        about=_about(seeds, asked.recipe),
        paper=asked.criterion.paper,
        against=against,
        doubt=doubt,
        settle=settling(interval, asked.threshold, seeds, asked.recipe) if open_ else "",
        threshold=asked.threshold,
    )


def untestable(context: Context, criteria: Criteria) -> Iterator[Verdict]:
    """A line for every experiment that was asked for and can't be had of this model or these data."""
    standing = {test.experiments[0]: test for test in declared().values() if test.words}
    for (task, model), reasons in context.unasked.items():
        for test, reason in ((standing[name], reason) for name, reason in reasons.items() if name in standing):
            criterion = criteria[test.name]
            about = "this training recipe" if test.about == "recipe" else "this checkpoint"
            yield Verdict(
                test.name, task, model, criterion.question, criterion=str(criterion), about=about,
                paper=criterion.paper, doubt=reason,
            )  # fmt: skip


def draws(level: float) -> int:
    """Bootstrap samples of which 20 or more lie beyond each end of the interval."""
    return max(2000, math.ceil(40 / (1 - level)))


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _about(seeds: int, recipe: bool) -> str:
    if seeds == 1 and not recipe:
        return "this checkpoint"
    return f"this training recipe ({seeds} seed{'s' if seeds > 1 else ''})"


def verdict(interval: Interval, threshold: float, seeds: int = 1, recipe: bool = False) -> Outcome:
    """Holds if the interval lies above the threshold, fails if below; else, or with few texts or seeds, cannot tell."""
    if _few(interval.n, seeds, recipe) or math.isnan(interval.low):
        return "cannot tell"
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"


def settling(interval: Interval, threshold: float, seeds: int, recipe: bool) -> str:
    """A sentence, for a test that could not tell."""
    if seeds < SEEDS_FOR_A_RECIPE and (recipe or seeds > 1):
        return f"A claim about training needs {SEEDS_FOR_A_RECIPE} seeds or more; this has {seeds}."
    if math.isnan(interval.mean) or interval.n == 0:
        return "No text has a number here."
    apart = abs(interval.mean - threshold)
    half = interval.mean - interval.low if interval.mean > threshold else interval.high - interval.mean
    needed = math.inf if apart == 0 else interval.n * (half / apart) ** 2 * SPARE
    if needed > MOST:
        return "No number of texts would do: the statistic lies at its margin."
    if seeds > 1:  # more texts don't help where trainings differ
        more = max(seeds + 1, math.ceil(seeds * needed / interval.n - 1e-9))
        return f"About {more} seeds would settle it, if their mean stays where it is; this has {seeds}."
    more = _round(max(needed, interval.n + 1))
    return f"About {more:,} texts would settle it, if their mean stays where it is; this has {interval.n:,}."


def _round(number: float) -> int:
    """Up to two digits."""
    digits = max(0, math.floor(math.log10(number)) - 1)
    unit = int(10**digits)
    return math.ceil(number / unit - 1e-9) * unit
