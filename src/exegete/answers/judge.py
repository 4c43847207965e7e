"""Judging: from the rows of experiments to verdicts.

A verdict compares an interval with a margin. Tests that are asked in several specifications are judged by the rules of
`exegete.answers.rules`: those that decide are one family per model. All others inform, and are a family of their own,
corrected for their number (Holm 1979): with m of them open every interval is at 1 − 0.05 / m; those whose interval
leaves the margin are settled, and the rest are looked at again at 1 − 0.05 / (what is left), until none is settled.
What is known beforehand to be too little, by its number of texts or seeds, is no test and doesn't count.

How many texts or seeds would turn a *cannot tell* into a verdict: intervals of means shrink as 1/√n, so one of
half-width w around a mean that lies d from the margin leaves it behind with n (w/d)² texts, if the mean stays where it
is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from exegete.answers.alternatives import Readable, readable
from exegete.answers.answer import Known, answer, decisions, findings, untested
from exegete.answers.context import Context, Where
from exegete.answers.criteria import SEEDS_FOR_A_RECIPE, Criteria, Criterion
from exegete.answers.goals import USERS, uncalibrated, votes
from exegete.answers.grades import NO_BY_OTHERS, NO_BY_RANKS, SHORT, DecidingTest, Graded, Grading, grade_test
from exegete.answers.groups import BesideGrade, grade_groups
from exegete.answers.readings import readings_of
from exegete.answers.retraining import retraining_note, skipped_tests
from exegete.answers.rules import ERROR, TEXTS, Ruled, Varying, apply_rules
from exegete.answers.scorecard import Audit
from exegete.experiments.common.contract import text_limit
from exegete.experiments.common.statistic import Evidence, Measured, Varied
from exegete.experiments.common.test import Test
from exegete.experiments.tests import all_tests, judged_experiments
from exegete.measures.statistics import Interval
from exegete.measures.student import one_sided
from exegete.report.section import Outcome, Variant, Verdict
from exegete.runs.study import Study, read_study

TEXTS_FOR_A_RATIO = 120  # of sums: fewer, and its interval misses too often
NOTHING = "No test of attention was asked for here (the audit judges {}): see what was found."
RANKS = "ranks"  # the test whose specifications say what to read
MOST = 1_000_000  # texts that nobody will have
SPARE = 1.1  # the mean won't stay exactly where it is
NO_NUMBER = "No text has a number here."
AT_THE_MARGIN = "No number of texts would do: the statistic lies at its margin."
RowsByExperiment = Mapping[str, pl.DataFrame]
GRADED = ("reads", "ranks", "carries")


class Unjudged(NamedTuple):
    """A test of a model on a task before it is judged."""

    test: Test
    task: str
    model: str
    criterion: Criterion
    measured: Measured | Varied

    @property
    def seeds(self) -> int:
        """How many trainings it rests on."""
        values = self.measured.values
        return max((len(each) for each in values.values()), default=1) if isinstance(values, Mapping) else len(values)

    @property
    def threshold(self) -> float:
        """What the interval is compared with."""
        return self.test.threshold(self.criterion.margin)

    @property
    def recipe(self) -> bool:
        """Whether it is about a way of training, whatever the number of seeds."""
        return self.test.about == "recipe"

    @property
    def is_graded(self) -> bool:
        """Whether it is one of the tests whose texts come in an order, and that grade attention."""
        return self.test.name in GRADED and isinstance(self.measured, Varied)


def judge(
    rows: RowsByExperiment,
    study: Study,
    criteria: Criteria,
    run: Path | None = None,
    frame: pl.DataFrame | None = None,
    context: Context | None = None,
    *,
    calibrating: bool = False,
) -> Audit:
    """Every test on every task and model, from the rows of a study's experiments by name.

    Whether tests may decide is known from calibration; while that is made, all do.
    """
    context = context or Context()
    asked = [each for name in judged_experiments() if name in rows for each in evidence_of(name, rows, study, criteria)]
    grades = gradings(asked, study, "readings" in rows)
    lines = [*judge_tests(asked, context, grades), *untestable(context, criteria)]
    voted = tuple(replace(line, votes=calibrating or votes(line.name, context.goal, criteria, study)) for line in lines)
    doubt = uncalibrated(criteria, study) if any(isinstance(each.measured, Varied) for each in asked) else ""
    first = next(iter(rows))
    known = Known(
        _instead(asked, rows, study, context),
        readings_of(rows.get("readings"), criteria),
        grades,
        _beside(grades, rows),
        _asked_texts(grades, study, context),
    )
    return Audit(
        answer=answer(voted, context, known) if asked else NOTHING.format(", ".join(judged_experiments())),
        decisions=decisions(voted, context.goal, known),
        findings=findings(voted, context.goal) if asked else (),
        instead=known.instead,
        beside=known.beside,
        readings=known.readings,
        tests=voted,
        criteria_version=criteria.version,
        goal=context.goal,
        user=USERS[context.goal],
        untested=(
            *filter(None, [doubt, _cut_short(study)]),
            *untested(voted, skipped_tests(study)),
            *retraining_note(study),
        ),
        run=run,
        frame=study.built_experiments()[first].summary(rows[first]) if frame is None else frame,
    )


def _cut_short(study: Study) -> str:
    """What was asked of fewer words and draws than our own audit asks, a sentence; empty if nothing was."""
    built, ours = study.built_experiments().get("mediation"), read_study("audit").built_experiments()["mediation"]
    less = [name for name in ("words", "draws") if getattr(built, name, math.inf) < getattr(ours, name)]
    if not less:
        return ""
    said = {"words": "{} words of a text", "draws": "{} draws of every removal"}
    most = " and ".join(said[name].format(getattr(built, name)) for name in less)
    return f"To save time, what decides was asked with {most} at most."


def _beside(grades: Mapping[Where, Grading], rows: RowsByExperiment) -> dict[Where, BesideGrade]:
    """What stands beside every grade."""
    return {
        (task, model): grade_groups(
            rows["mediation"].filter(pl.col("task") == task, pl.col("model") == model), list(grading.ranks.bets)
        )
        for (task, model), grading in grades.items()
    }


def _asked_texts(grades: Mapping[Where, Grading], study: Study, context: Context) -> dict[Where, int]:
    """How many texts what decides was asked of."""
    every = {where: context.predictions[where].texts for where in grades if where in context.predictions}
    wanted = text_limit(study.built_experiments()["mediation"], study.split) if grades else None
    return {where: texts if wanted is None else min(texts, wanted) for where, texts in every.items()}


def _instead(
    asked: Sequence[Unjudged], rows: RowsByExperiment, study: Study, context: Context
) -> dict[Where, tuple[Readable, ...]]:
    """What to read, by task and model, by the specifications that count for attention."""
    found = {}
    for each in asked:
        if each.test.name == RANKS and isinstance(each.measured, Varied):
            here = pl.col("task") == each.task, pl.col("model") == each.model
            own, built = rows["mediation"].filter(*here), study.built_experiments()["mediation"]
            costs = dict(context.costs.get((each.task, each.model), {}))
            found[each.task, each.model] = readable(own, getattr(built, "choose_on", ""), each.measured.counted, costs)
    return found


def evidence_of(experiment: str, rows: RowsByExperiment, study: Study, criteria: Criteria) -> Iterator[Unjudged]:
    """The tests of an experiment, of every task and model of its rows; none where others that they need are missing."""
    built, own = study.built_experiments(), [t for t in all_tests().values() if t.experiments[0] == experiment]
    for (task, model), _ in rows[experiment].group_by("task", "model", maintain_order=True):
        here = pl.col("task") == task, pl.col("model") == model
        for test in (test for test in own if set(test.experiments) <= set(rows)):
            frames = tuple(rows[name].filter(*here) for name in test.experiments)
            settings = tuple(built[name] for name in test.experiments)
            margin = criteria[test.name].margin
            measured = test.measured(Evidence(frames, settings, margin)) if all(map(len, frames)) else None
            if measured is not None:
                yield Unjudged(test, str(task), str(model), criteria[test.name], measured)


def _doubt(asked: Unjudged, context: Context) -> str:
    """Why nothing can be told: where a model only guesses, no number says how it comes to its predictions."""
    prediction = context.predictions.get((asked.task, asked.model))
    guess = prediction.guess if prediction is not None else ""
    return guess or (asked.measured.doubt if isinstance(asked.measured, Measured) else "")


def gradings(asked: Sequence[Unjudged], study: Study, has_readings: bool = False) -> dict[Where, Grading]:
    """By task and model: the tests that decide, and what is sure of them however many texts were asked."""
    found: dict[Where, dict[str, Graded]] = {}
    for each in asked:
        if each.is_graded:
            found.setdefault((each.task, each.model), {})[each.test.name] = _graded(each, study, has_readings)
    nothing = Graded((0.0,), {}, {}, 0.0, 0.0)  # of a run that is older than the third test
    return {
        where: Grading(*(tests.get(name, nothing) for name in GRADED))
        for where, tests in found.items()
        if {"reads", "ranks"} <= set(tests)
    }


def _graded(asked: Unjudged, study: Study, has_readings: bool) -> Graded:
    assert isinstance(asked.measured, Varied)
    few, criterion = _few_seeds(asked.seeds, asked.recipe), asked.criterion
    void = dict.fromkeys(asked.measured.values, few) if few else asked.measured.void
    test = DecidingTest(asked.measured.values, void, (criterion.margin,))
    if asked.test.name == RANKS:
        assert criterion.partly is not None
        no_error = NO_BY_RANKS - NO_BY_OTHERS if has_readings else NO_BY_RANKS
        built = study.built_experiments()["mediation"]
        tolerance = float(getattr(built, "tolerance", test.tolerance))
        test = test._replace(edges=(criterion.margin, criterion.partly), no_error=no_error, tolerance=tolerance)
        drawn = [name for name in test.values if name.startswith("resample")]
        test = test._replace(short=dict.fromkeys(drawn, SHORT / getattr(built, "draws", 1)))
    return grade_test(test._replace(least=0.0) if asked.test.name == "carries" else test)


def judge_tests(
    asked: Sequence[Unjudged], context: Context | None = None, grades: Mapping[Where, Grading] | None = None
) -> list[Verdict]:
    """Verdicts, in the order of what was asked: those that inform together (Holm), those that decide by model."""
    context = context or Context()
    doubts = [_doubt(each, context) for each in asked]
    families: dict[tuple[str, ...], list[int]] = {}
    found = _informing(asked, doubts)
    for place, each in enumerate(asked):
        if each.is_graded and grades and (each.task, each.model) in grades:
            own = getattr(grades[each.task, each.model], each.test.name)
            found[place] = _of_graded(each, own, doubts[place])
        elif isinstance(each.measured, Varied):
            deciding = "decide" if each.test.goals else "inform"
            families.setdefault((each.task, each.model, deciding), []).append(place)
    for members in families.values():
        rulings = apply_rules([_varying(asked[place]) for place in members])
        found |= {p: _ruled(asked[p], ruling, doubts[p]) for p, ruling in zip(members, rulings, strict=True)}
    return [replace(found[place], settled_by=_settled_by(found[place], each)) for place, each in enumerate(asked)]


def _settled_by(line: Verdict, asked: Unjudged) -> Literal["", "texts", "seeds"]:
    """More of which would settle a line that can't be told."""
    if line.verdict != "cannot tell":
        return ""
    if _few_seeds(asked.seeds, asked.recipe):
        return "seeds"
    if line.settle in ("", NO_NUMBER, AT_THE_MARGIN):
        return ""
    return "seeds" if asked.seeds > 1 and not asked.is_graded else "texts"


def _of_graded(asked: Unjudged, own: Graded, doubt: str) -> Verdict:
    """The line of a test that decides: the numbers of the specification that lies worst for its verdict."""
    assert isinstance(asked.measured, Varied)
    variants = own.variants(list(asked.measured.values))
    doubt = doubt or ("" if own.bets else next((v.void for v in variants if v.void), ""))
    line = _line(asked, "cannot tell" if doubt else own.outcome, 1 - 2 * ERROR, doubt)
    counted = [variant for variant in variants if not variant.void]
    worst = _worst(line.verdict, counted, asked.threshold)
    settle = f"{own.texts} texts do not settle it: ask more of them with --texts."
    return _with_numbers(asked, line, variants, worst, settle)


def _with_numbers(
    asked: Unjudged, line: Verdict, variants: tuple[Variant, ...], own: Variant | None, settle: str
) -> Verdict:
    """A line with the numbers of one of its specifications, and, where it is open, what would settle it."""
    assert isinstance(asked.measured, Varied)
    is_open = line.verdict == "cannot tell" and not line.doubt and own is not None
    return replace(
        line,
        statistic=own.statistic if own else None,
        n=own.n if own else 0,
        interval=(own.low, own.high) if own else (None, None),
        chance=asked.measured.chance,
        against=own.name if own else "",
        settle=settle if is_open else "",
        variants=variants,
    )


def _worst(outcome: Outcome, variants: Sequence[Variant], threshold: float) -> Variant | None:
    """Of what holds the lowest end, of what fails the highest; else the one nearest to its threshold."""
    keys = {"holds": lambda v: _number(v.low), "fails": lambda v: -_number(v.high)}
    nearest = keys.get(outcome, lambda v: abs(_number(v.statistic) - threshold))
    return min(variants, key=nearest, default=None)


def _informing(asked: Sequence[Unjudged], doubts: Sequence[str]) -> dict[int, Verdict]:
    """Verdicts on tests that are asked in one way, all together."""
    plain = [place for place, each in enumerate(asked) if isinstance(each.measured, Measured)]
    enough = [place for place in plain if _enough(asked[place])]
    level = 1 - ERROR / max(1, len(enough))
    found = {place: _judged(asked[place], level, doubts[place]) for place in plain}
    left = [place for place in enough if found[place].verdict == "cannot tell"]
    while left and len(left) < len(enough):
        enough, level = left, 1 - ERROR / len(left)
        found |= {place: _judged(asked[place], level, doubts[place]) for place in left}
        left = [place for place in left if found[place].verdict == "cannot tell"]
    return found


def _varying(asked: Unjudged) -> Varying:
    assert isinstance(asked.measured, Varied)
    few = _few_seeds(asked.seeds, asked.recipe)
    void = dict.fromkeys(asked.measured.values, few) if few else asked.measured.void
    return Varying(asked.threshold, asked.test.bound, asked.measured.values, void)


def _ruled(asked: Unjudged, ruling: Ruled, doubt: str) -> Verdict:
    """The line of a test that is asked in several ways: the numbers of the specification that its verdict hangs on."""
    own = next((variant for variant in ruling.variants if variant.name == ruling.decisive), None)
    empty = "" if own else next((variant.void for variant in ruling.variants if variant.void), "")
    doubt = doubt or empty
    line = _line(asked, "cannot tell" if doubt else ruling.outcome, 1 - 2 * ERROR, doubt)
    interval = Interval(_number(own.statistic), _number(own.low), _number(own.high), own.n, 0) if own else None
    settle = settling(interval, asked.threshold, asked.seeds, asked.recipe) if interval else ""
    return _with_numbers(asked, line, ruling.variants, own, settle)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _enough(asked: Unjudged) -> bool:
    """Whether there are texts and seeds enough for any verdict."""
    assert isinstance(asked.measured, Measured)
    texts = int((~asked.measured.values.isnan()).sum())
    return texts >= _needed(asked.measured) * asked.seeds and not _few_seeds(asked.seeds, asked.recipe)


def _needed(measured: Measured) -> int:
    """Texts without which there is no verdict."""
    return TEXTS_FOR_A_RATIO if measured.ratio else TEXTS


def _few_seeds(seeds: int, recipe: bool) -> str:
    """Why there are too few trainings, or nothing."""
    if seeds >= SEEDS_FOR_A_RECIPE or (seeds == 1 and not recipe):
        return ""
    return f"a claim about training needs {SEEDS_FOR_A_RECIPE} seeds or more; this has {seeds}"


def _judged(asked: Unjudged, level: float, doubt: str) -> Verdict:
    """A test that is asked in one way, by its interval at a level."""
    assert isinstance(asked.measured, Measured)
    interval = one_sided(asked.measured.values, (1 - level) / 2, asked.test.bound)
    decided = "cannot tell" if doubt or not _enough(asked) else judge_interval(interval, asked.threshold)
    line = _line(asked, decided, level, doubt)
    open_ = decided == "cannot tell" and not doubt
    return replace(
        line,
        statistic=_finite(interval.mean),
        n=interval.n,
        interval=(_finite(interval.low), _finite(interval.high)),
        chance=_finite(asked.measured.chance),
        against=asked.measured.against,
        settle=settling(interval, asked.threshold, asked.seeds, asked.recipe) if open_ else "",
    )


def _line(asked: Unjudged, decided: Outcome, level: float, doubt: str) -> Verdict:
    """What a line says whatever was found."""
    return Verdict(
        name=asked.test.name, task=asked.task, model=asked.model, question=asked.criterion.question, level=level,
        criterion=str(asked.criterion), verdict=decided, about=_about(asked.seeds, asked.recipe),
        paper=asked.criterion.paper, doubt=doubt, threshold=asked.threshold,
        partly=asked.criterion.partly,
    )  # fmt: skip


def untestable(context: Context, criteria: Criteria) -> Iterator[Verdict]:
    """A line for every experiment that was asked for and can't be had of this model or these data."""
    standing = {test.experiments[0]: test for test in all_tests().values() if test.words}
    for (task, model), reasons in context.unasked.items():
        for test, reason in ((standing[name], reason) for name, reason in reasons.items() if name in standing):
            criterion = criteria[test.name]
            about = "this training recipe" if test.about == "recipe" else "this checkpoint"
            yield Verdict(
                test.name, task, model, criterion.question, criterion=str(criterion), about=about,
                paper=criterion.paper, doubt=reason,
            )  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _about(seeds: int, recipe: bool) -> str:
    if seeds == 1 and not recipe:
        return "this checkpoint"
    return f"this training recipe ({seeds} seed{'s' if seeds > 1 else ''})"


def judge_interval(interval: Interval, threshold: float) -> Outcome:
    """Holds if the interval lies above the threshold, fails if below; else cannot tell."""
    if interval.low > threshold:
        return "holds"
    return "fails" if interval.high < threshold else "cannot tell"


def settling(interval: Interval, threshold: float, seeds: int, recipe: bool) -> str:
    """A sentence, for a test that could not tell."""
    if few := _few_seeds(seeds, recipe):
        return f"{few[0].upper()}{few[1:]}."
    if math.isnan(interval.mean) or interval.n == 0:
        return NO_NUMBER
    apart = abs(interval.mean - threshold)
    half = interval.mean - interval.low if interval.mean > threshold else interval.high - interval.mean
    needed = math.inf if apart == 0 else interval.n * (half / apart) ** 2 * SPARE
    if needed > MOST:
        return AT_THE_MARGIN
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
