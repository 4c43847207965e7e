"""Verdicts together: Holm's correction, what would settle a test, goals and votes, what can't be tested."""

import math
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest
import torch
from scipy.stats import norm

from exegete.answers import goals
from exegete.answers.answer import answer, findings
from exegete.answers.context import GUESS, Context, MethodCost, Prediction, context_of
from exegete.answers.criteria import load_criteria
from exegete.answers.judge import Unjudged, judge, judge_tests, settling
from exegete.base.errors import UsageError
from exegete.experiments.common.statistic import Measured
from exegete.experiments.common.test import Goal
from exegete.experiments.tests import all_tests
from exegete.measures.statistics import Interval
from exegete.report.section import Verdict as Line
from exegete.runs.study import Study
from exegete.training.skill import Skill
from tests.answers.cards import grading_that, known_of, verdict

CRITERIA = load_criteria()


def asked(mean: float, n: int = 400, name: str = "used", seeds: int = 1, recipe: bool = False) -> Unjudged:
    """A test with the standard error 1/√n around a mean, against the threshold 0."""
    ranks = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    values = mean + torch.from_numpy(norm.ppf(ranks.numpy()))
    about = "recipe" if recipe else "checkpoint"
    test = replace(all_tests()["used"], name=name, bound=100.0, about=about)  # type: ignore[arg-type]
    criterion = CRITERIA["used"].model_copy(update={"margin": 0.0})
    return Unjudged(test, "t", "m", criterion, Measured(values.expand(seeds, n), 0.0))


def holm(p: Sequence[float], error: float = 0.05) -> list[bool]:
    """Holm's rule from p-values, as he wrote it: the k-th smallest against error / (m − k), until one is too large."""
    order = sorted(range(len(p)), key=p.__getitem__)
    settled = [False] * len(p)
    for k, place in enumerate(order):
        if p[place] > error / (len(p) - k):
            break
        settled[place] = True
    return settled


@pytest.mark.parametrize("means", [(0.2, 0.14, 0.12, 0.09), (0.2, 0.105, 0.105, 0.105), (0.1, -0.2, 0.14, 0.0)])
def test_verdicts_are_those_of_holm(means: tuple[float, ...]) -> None:
    p = [2 * float(norm.sf(abs(mean) * math.sqrt(400))) for mean in means]
    found = judge_tests([asked(mean) for mean in means])
    assert [test.verdict != "cannot tell" for test in found] == holm(p)
    assert 0 < sum(holm(p)) < len(p)
    open_ = [test for test in found if test.verdict == "cannot tell"]
    assert {test.level for test in open_} <= {1 - 0.05 / len(open_)}


def test_one_that_bonferroni_would_leave_open_is_settled() -> None:
    """0.125 · 20 = 2.5 standard errors: p = 0.0124 is over 0.05 / 10, and under 0.05 / 2."""
    alone = judge_tests([asked(0.125), *[asked(0.0)] * 9])
    beside = judge_tests([asked(0.125), *[asked(0.5)] * 8, asked(0.0)])
    assert (alone[0].verdict, beside[0].verdict) == ("cannot tell", "holds")


def test_what_is_too_little_beforehand_is_no_test() -> None:
    few = [asked(0.5, n=5), asked(0.5, seeds=2, recipe=True)]
    found = judge_tests([asked(0.11), *few * 5])
    assert found[0].level == 0.95
    assert found[0].verdict == "holds"  # 2.2 standard errors
    assert {test.verdict for test in found[1:]} == {"cannot tell"}


def test_texts_that_would_settle_it_are_told() -> None:
    near = Interval(0.02, -0.02, 0.06, 100, 0)  # half-width 0.04, twice the distance: four times the texts, and a tenth
    assert "About 440 texts" in settling(near, 0.0, 1, recipe=False)
    assert "this has 100" in settling(near, 0.0, 1, recipe=False)
    assert "About 440 texts" in settling(Interval(-0.02, -0.06, 0.02, 100, 0), 0.0, 1, recipe=False)
    assert "No number of texts" in settling(Interval(0.0, -0.02, 0.02, 100, 0), 0.0, 1, recipe=False)
    assert "5 seeds or more; this has 2" in settling(near, 0.0, 2, recipe=False)
    assert "this has 1" in settling(near, 0.0, 1, recipe=True)
    assert "About 22 seeds" in settling(near, 0.0, 5, recipe=True)
    assert "No text" in settling(Interval(math.nan, math.nan, math.nan, 0, 3), 0.0, 1, recipe=False)


def test_the_sentence_keeps_its_word() -> None:
    """With as many texts as it asks for, spread alike, there is a verdict."""
    first = judge_tests([asked(0.06)])[0]
    assert first.verdict == "cannot tell"
    needed = int(first.settle.split()[1].replace(",", ""))
    assert judge_tests([asked(0.06, n=needed)])[0].verdict == "holds"
    assert judge_tests([asked(0.06, n=needed // 2)])[0].verdict == "cannot tell"


def test_a_model_that_guesses_has_nothing_to_explain() -> None:
    """By the area under the curve; runs of before, which have none, by accuracy against the most frequent class."""
    rare = Prediction(0.79, 0.8, 400, Skill("auc", 0.83, 0.78, 0.88, 0.5, 400))
    assert rare.guess == ""
    unsure = Prediction(0.9, 0.5, 400, Skill("auc", 0.55, 0.49, 0.61, 0.5, 400)).guess
    assert "AUC 0.550 [0.490, 0.610], by chance 0.5" in unsure
    assert "may only guess" in unsure
    assert Prediction(0.53, 0.5, 100).guess == GUESS
    assert Prediction(0.7, 0.5, 100).guess == ""
    assert Prediction(0.53, 0.5, 100_000).guess == ""
    assert Prediction(0.3, None, 100).guess == ""  # words of a translation


def rows(tvd: float) -> pl.DataFrame:
    fixed = {"task": "t", "model": "m", "seed": 0, "split": "test", "median_logit": 0.1}
    return pl.DataFrame([fixed | {"example": i, "median_tvd": tvd + 0.01 * math.sin(i)} for i in range(100)])


STUDY = Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "experiments": [{"name": "permutation"}]})


def test_of_a_guessing_model_no_verdict_is_given() -> None:
    context = Context(predictions={("t", "m"): Prediction(0.5, 0.5, 100)})
    audit = judge({"permutation": rows(0.3)}, STUDY, CRITERIA, frame=pl.DataFrame(), context=context)
    assert [(test.verdict, test.doubt) for test in audit.tests] == [("cannot tell", GUESS)]


def test_what_cant_be_asked_is_a_line_of_its_own_with_its_reason() -> None:
    context = Context(unasked={("t", "m"): {"necessity": "it is one trained model", "sanity": "no matter"}})
    audit = judge({"permutation": rows(0.3)}, STUDY, CRITERIA, frame=pl.DataFrame(), context=context)
    (line,) = [test for test in audit.tests if test.verdict == "not testable"]
    assert (line.name, line.doubt, line.about, line.n) == (
        "needed",
        "it is one trained model",
        "this training recipe",
        0,
    )
    assert "It can't be tested whether the task needs it: it is one trained model." in audit.untested
    assert "stable over seeds" in audit.untested[-1]
    assert "which word carries" not in audit.untested[-1]


def test_the_context_of_a_run_is_read_from_its_cells() -> None:
    cell = {
        "task": "t", "model": "m", "metrics": {"test": {"accuracy": 0.8}}, "majority": 0.5, "texts": 50,
        "unasked": {"necessity": "why"},
        "costs": {"faithfulness": [{"method": "lrp", "forward": 1.0, "backward": 1.0, "ms": 2.0}]},
    }  # fmt: skip
    context = context_of([cell, cell | {"metrics": {"test": {"accuracy": 0.6}}}], "sanity")
    assert context.predictions["t", "m"].accuracy == pytest.approx(0.7)
    assert context.predictions["t", "m"][1:] == (0.5, 50, None)
    assert context.unasked["t", "m"] == {"necessity": "why"}
    assert context.costs["t", "m"]["lrp"] == MethodCost(1.0, 1.0, 2.0)
    assert context.goal == "sanity"
    sure, unsure = (Skill("auc", 0.8, low, 0.9, 0.5, 50)._asdict() for low in (0.7, 0.4))
    both = context_of([cell | {"skill": sure}, cell | {"skill": unsure}]).predictions["t", "m"].skill
    assert both is not None
    assert both.low == pytest.approx(0.55)  # the mean over seeds


def line(name: str, verdict: str, goal: Goal = "faithful", against: str = "lrp") -> Line:
    return Line(
        name, "t", "m", "?", -0.2, 100, (-0.3, -0.1), 0.95, 0.0, "c", verdict, "this checkpoint", "p", against,  # type: ignore[arg-type]
        votes=goals.votes(name, goal),
    )  # fmt: skip


def test_what_a_goal_hangs_on_and_can_not_be_tested_is_told() -> None:
    absent = replace(line("plausible", "not testable", "plausible"), doubt="there are no rationales")
    said = answer([line("used", "holds", "plausible"), absent], Context("plausible"))
    assert said.startswith(
        "Undecided. What decides was not asked.\n\nIt hangs on whether it marks what people marked. "
    )
    assert "That can't be tested: there are no rationales." in said
    alone = answer([line("used", "holds", "sanity")], Context("sanity"))
    assert "That was not asked." in alone


@pytest.mark.parametrize(("goal", "short"), [("faithful", "No"), ("plausible", "Yes"), ("sanity", "Undecided")])
def test_every_goal_has_its_own_judges(goal: Goal, short: str) -> None:
    tests = [line("used", "holds", goal), line("plausible", "holds", goal), line("unique", "fails", goal)]
    tests += [verdict("reads", "holds", goal=goal), verdict("ranks", "fails", goal=goal)]
    said = answer(tests, Context(goal), known_of(grading_that("holds", "fails")))
    assert said.startswith(short)
    beside = " ".join(findings(tests, goal))
    assert ("has no say here" in said) == (goal == "sanity")
    assert ("has no say here" in beside) == (goal == "faithful")  # there it informs, and is not in the answer


def test_plausibility_never_enters_a_developers_answer() -> None:
    good = [verdict(name, "holds") for name in ("reads", "ranks")]
    known = known_of(grading_that("holds", "holds"))
    without = answer(good, known=known)
    assert without.startswith("Yes. ")
    for found in ("holds", "fails", "cannot tell"):
        assert answer([*good, line("plausible", found)], known=known) == without


def test_a_goal_that_there_is_not() -> None:
    assert goals.goal("sanity") == "sanity"
    with pytest.raises(UsageError, match="faithful"):
        goals.goal("faithfull")


def test_a_test_that_calibration_silenced_has_no_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goals, "silenced_tests", lambda: {"used": "it can't tell"})
    assert not goals.votes("used", "sanity")
    assert goals.votes("finds_facts", "sanity")
    said = answer([line("used", "fails", "sanity"), line("finds_facts", "holds", "sanity")], Context("sanity"))
    assert said.startswith("Yes")
