"""Judging faithfulness, plausibility and known answers: verdicts follow from made-up rows whose answer is plain."""

import math
from typing import Any

import polars as pl
import pytest

from exegete.answers.context import Context
from exegete.answers.criteria import load_criteria
from exegete.answers.judge import judge
from exegete.answers.scorecard import Audit
from exegete.experiments.common.test import Goal
from exegete.runs.study import Study
from tests.answers.cards import told

METHODS = ("attention", "lrp", "leave_one_out:of=logit", "random")
FIXED: dict[str, Any] = {"task": "t", "model": "m", "n": 9, "gold": "x", "predicted": "x"}


def study(*experiments: dict[str, Any]) -> Study:
    return Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "experiments": experiments})


def faithful(dev: dict[str, float], test: dict[str, float], unsigned: float = 1.0, n: int = 200) -> pl.DataFrame:
    """Comprehensiveness with the given means, which are at most `unsigned` where words are ranked by size."""
    rows = [
        FIXED | {"seed": 0, "split": split, "example": i, "method": method, "removal": removal, "ranking": by}
        | {"measure": "comprehensiveness", "fraction": "aopc", "value": min(mean, most) + 0.05 * math.sin(i * place)}
        for split, means in (("dev", dev), ("test", test))
        for place, (method, mean) in enumerate(means.items(), 1)
        for removal in ("delete", "zero", "unknown")
        for by, most in (("signed", 1.0), ("magnitude", unsigned))
        for i in range(n)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def judged(rows: dict[str, pl.DataFrame], *experiments: dict[str, Any], goal: Goal = "faithful") -> Audit:
    return judge(rows, study(*experiments), load_criteria(), frame=pl.DataFrame(), context=Context(goal))


EXPERIMENT = {"name": "faithfulness", "methods": METHODS}


@pytest.mark.parametrize(
    ("attention", "over", "best"), [(0.38, "holds", "holds"), (0.2, "holds", "fails"), (0.05, "fails", "fails")]
)
def test_attention_is_held_against_random_and_against_the_best(attention: float, over: str, best: str) -> None:
    dev = {"attention": 0.1, "lrp": 0.4, "leave_one_out:of=logit": 0.3, "random": 0.1}
    test = {
        "attention": attention,
        "lrp": 0.4,
        "leave_one_out:of=logit": 0.6,
        "random": 0.1,
    }  # the winner on dev counts
    audit = judged({"faithfulness": faithful(dev, test)}, EXPERIMENT)
    named = {t.name: t for t in audit.tests}
    assert named["beats_random"].statistic == pytest.approx(attention - 0.1, abs=2e-3)
    assert named["faithful"].statistic == pytest.approx(attention - 0.4, abs=2e-3)
    assert named["faithful"].against == "lrp"
    assert named["faithful"].chance == pytest.approx(-0.3, abs=2e-3)
    assert (named["beats_random"].verdict, named["faithful"].verdict) == (over, best)
    assert audit.answer.startswith("Undecided. What decides was not asked")  # they inform
    assert "instead" not in audit.answer


@pytest.mark.parametrize(("unsigned", "verdict"), [(0.2, "holds"), (1.0, "fails")])
def test_what_the_sign_alone_does_is_told(unsigned: float, verdict: str) -> None:
    means = {"attention": 0.2, "lrp": 0.4, "leave_one_out:of=logit": 0.3, "random": 0.1}
    audit = judged({"faithfulness": faithful(means, means, unsigned)}, EXPERIMENT)
    named = {test.name: test for test in audit.tests}
    assert (named["faithful"].verdict, named["faithful_by_size"].verdict) == ("fails", verdict)
    assert ("That is for the sign" in told(audit)) == (verdict == "holds")


def marked(precision: float, obeys: float, needed: float = 1.0, n: int = 200) -> pl.DataFrame:
    """Precision at k of planted words."""
    rows = [
        FIXED | {"seed": 0, "split": "test", "example": i, "method": method, "ranking": ranking, "shortcut": "token"}
        | {"measure": "precision_at_k", "chance": 0.1, "obeys": i < obeys * n, "needed": i < needed * n}
        | {"value": float(i % 10 < precision * 10) if i < obeys * n else None}
        for method in ("attention", "attention_x_norm", "random")
        for ranking in ("signed", "magnitude")
        for i in range(n)
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("precision", "obeys", "verdict"),
    [(1.0, 1.0, "holds"), (0.4, 1.0, "fails"), (1.0, 0.5, "cannot tell"), (0.8, 1.0, "cannot tell")],
)
def test_planted_words_must_be_found_if_the_model_obeys_them(precision: float, obeys: float, verdict: str) -> None:
    experiment = {"name": "known_answer", "methods": ("attention", "attention_x_norm", "random")}
    audit = judged({"known_answer": marked(precision, obeys)}, experiment)
    (test,) = audit.tests
    assert (test.name, test.verdict) == ("known_answer", verdict)
    assert test.chance == pytest.approx(0.1)
    assert bool(test.doubt) == (obeys < 0.95)
    assert ("only 50%" in told(audit)) == (obeys < 0.95)


@pytest.mark.parametrize(("mean", "verdict"), [(0.5, "holds"), (0.1, "fails")])
def test_plausibility_is_judged_above_its_chance_and_decides_nothing(mean: float, verdict: str) -> None:
    rows = [
        FIXED | {"seed": 0, "split": "test", "example": i, "method": "attention", "measure": "auprc"}
        | {"value": mean + 0.05 * math.sin(i), "chance": 0.3}
        for i in range(200)
    ]  # fmt: skip
    experiment = {"name": "plausibility", "methods": ("attention",)}
    audit = judged({"plausibility": pl.DataFrame(rows)}, experiment)
    assert [test.verdict for test in audit.tests] == [verdict]
    assert not audit.answer.startswith(("Yes", "No."))


def test_planted_words_that_the_model_can_do_without_decide_nothing() -> None:
    experiment = {"name": "known_answer", "methods": ("attention", "attention_x_norm", "random")}
    rows = marked(0.5, 1.0, needed=0.05)  # 10 texts
    (test,) = judged({"known_answer": rows}, experiment).tests
    assert (test.n, test.verdict) == (10, "cannot tell")


def test_one_seed_that_has_not_learnt_is_a_doubt() -> None:
    experiment = {"name": "known_answer", "methods": ("attention", "attention_x_norm", "random")}
    rows = pl.concat([marked(1.0, share).with_columns(seed=seed) for seed, share in enumerate([1, 1, 1, 1, 0.7])])
    (test,) = judged({"known_answer": rows}, experiment).tests
    assert test.verdict == "cannot tell"
    assert "only 70%" in test.doubt


def test_every_shortcut_and_every_task_counts() -> None:
    experiment = {"name": "known_answer", "methods": ("attention", "attention_x_norm", "random")}

    def planted(task: str, precision: float) -> pl.DataFrame:
        return marked(precision, 1.0).with_columns(task=pl.lit(task))

    both = pl.concat([planted("t:planted=token", 1.0), planted("t:planted=pair", 0.4)])
    audit = judged({"known_answer": both}, experiment)
    assert "attention finds it" in told(audit)
    assert "attention misses it" in told(audit)
    every = pl.concat([both, planted("u:planted=token", 1.0)])
    audit = judged({"known_answer": every}, experiment, goal="sanity")
    assert [decision.answer for decision in audit.decisions.values()] == ["no", "yes"]
    assert "Of 2 models: yes for 1, no for 1." in audit.answer


def test_a_method_that_erases_as_the_evaluation_does_is_not_the_best() -> None:
    means = {"attention": 0.2, "lrp": 0.3, "leave_one_out:of=logit": 0.9, "random": 0.1}
    audit = judged({"faithfulness": faithful(means, means)}, EXPERIMENT)
    assert {test.name: test for test in audit.tests}["faithful"].against == "lrp"


def test_scores_without_dev_texts_are_left_out_of_the_choice() -> None:
    dev = {"attention": 0.2, "lrp": 0.3, "random": 0.1}
    audit = judged({"faithfulness": faithful(dev, dev | {"given:file=s.csv": 0.9})}, EXPERIMENT)
    assert {test.name: test for test in audit.tests}["faithful"].against == "lrp"


def test_where_the_sign_is_open_the_size_is_told() -> None:
    """With the sign attention is 0.05 below the best, at the margin; by size both are the same."""
    means = {"attention": 0.3, "lrp": 0.35, "leave_one_out:of=logit": 0.3, "random": 0.1}
    rows = faithful(means, means, 0.3).with_columns(
        value=pl.when(pl.col("method") == "lrp", pl.col("ranking") == "signed")
        .then(pl.col("value") + 0.3 * (pl.col("example") * 1.7).sin())
        .otherwise("value")
    )
    audit = judged({"faithfulness": rows}, EXPERIMENT)
    named = {test.name: test.verdict for test in audit.tests}
    assert (named["faithful"], named["faithful_by_size"]) == ("cannot tell", "holds")
    assert "By size, without the sign, it finds words that matter" in told(audit)


def test_an_experiment_without_attention_is_not_judged() -> None:
    rows = marked(1.0, 1.0).filter(pl.col("method") == "random")
    assert judged({"known_answer": rows}, {"name": "known_answer", "methods": ("random",)}).tests == ()


def test_all_tests_of_a_model_are_answered_together() -> None:
    means = {"attention": 0.2, "lrp": 0.4, "leave_one_out:of=logit": 0.3, "random": 0.1}
    planted = marked(0.4, 1.0).with_columns(task=pl.lit("t:planted=token"))
    tables = {"faithfulness": faithful(means, means), "known_answer": planted}
    audit = judged(tables, EXPERIMENT, {"name": "known_answer", "methods": ("attention", "random")})
    assert audit.answer.count("This is about") == 1
    assert "attention misses it" in told(audit)
    assert {test.level for test in audit.tests} == {1 - 0.05 / 4}


@pytest.mark.parametrize(("obeys", "answer"), [(1.0, "no"), (0.5, "undecided")])
def test_planted_words_that_were_not_learnt_have_no_say(obeys: float, answer: str) -> None:
    means = {"attention": 0.4, "lrp": 0.4, "leave_one_out:of=logit": 0.3, "random": 0.1}
    planted = marked(0.4, obeys).with_columns(task=pl.lit("t:planted=token"))
    tables = {"faithfulness": faithful(means, means), "known_answer": planted}
    audit = judged(tables, EXPERIMENT, {"name": "known_answer", "methods": ("attention", "random")}, goal="sanity")
    assert [decision.answer for decision in audit.decisions.values()] == [answer]
    assert ("nothing can be told: the model obeys in only 50%" in told(audit)) == (obeys < 1)


@pytest.mark.parametrize(("found", "verdict"), [(1.0, "holds"), (0.5, "fails")])
def test_facts_must_be_found_where_the_answer_is_right(found: float, verdict: str) -> None:
    """Attention finds all facts of 160 questions answered right (or half of them), and none of 40 answered wrong."""
    rows = [
        FIXED | {"seed": 0, "split": "test", "example": i, "method": method, "ranking": ranking}
        | {"measure": measure, "chance": 0.2, "correct": i < 160, "value": value if i < 160 else 0.0}
        for method, value in (("attention", found), ("attention_x_norm", 0.0), ("random", 0.2))
        for ranking in ("signed", "magnitude")
        for measure in ("precision_at_k", "first")
        for i in range(200)
    ]  # fmt: skip
    experiment = {"name": "supporting_facts", "methods": ("attention", "attention_x_norm", "random")}
    audit = judged({"supporting_facts": pl.DataFrame(rows)}, experiment)
    (test,) = audit.tests
    assert (test.name, test.n, test.statistic, test.verdict) == ("finds_facts", 160, found, verdict)
    assert test.chance == pytest.approx(0.2)
    assert not test.votes  # an encoder may carry one fact to the words of another
    assert ("it points at those that the question needs" in told(audit)) == (verdict == "holds")
    without = pl.DataFrame(rows).filter(pl.col("method") == "random")
    assert judged({"supporting_facts": without}, experiment | {"methods": ("random",)}).tests == ()


def test_a_run_without_tests_says_so() -> None:
    audit = judged({"sanity": pl.DataFrame()}, {"name": "sanity"})
    assert audit.tests == ()
    assert "No test of attention" in audit.answer
