"""The audit's tests of rewritten attention: verdicts follow from made-up rows whose answer is plain."""

import math
from typing import Any

import polars as pl
import pytest

from exegete.answers.criteria import SEEDS_FOR_A_RECIPE, load_criteria
from exegete.answers.judge import judge
from exegete.answers.pages.card import card, strip
from exegete.answers.pages.verdicts import scorecards, verdicts
from exegete.answers.scorecard import Audit
from exegete.experiments.adversary_training.statistics import hard_to_fake
from exegete.experiments.common.statistic import Evidence, Measured
from exegete.experiments.diagnostic.statistics import informative
from exegete.experiments.necessity.statistics import needed
from exegete.experiments.seed_stability.statistics import stable
from exegete.experiments.tests import all_tests
from exegete.report.section import Verdict as Line
from exegete.runs.study import Study

N = 200


def wave(i: int, mean: float) -> float:
    return mean + 0.02 * math.sin(i)


def rows(seeds: int = 1, **columns: Any) -> pl.DataFrame:
    """One row per seed and text; a callable column is computed from the text's number."""
    return pl.DataFrame(
        [
            {"task": "t", "model": "m", "seed": seed, "split": "test", "example": i}
            | {name: value(i) if callable(value) else value for name, value in columns.items()}
            for seed in range(seeds)
            for i in range(N)
        ]
    )


def judged(experiment: dict[str, Any], found: pl.DataFrame) -> Audit:
    study = Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "experiments": [experiment]})
    return judge({experiment["name"]: found}, study, load_criteria(), frame=pl.DataFrame())


def only(audit: Audit) -> Line:
    (test,) = audit.tests
    return test


@pytest.mark.parametrize(("tvd", "found"), [(0.2, "holds"), (0.005, "fails")])
def test_used_is_the_median_tvd_and_does_not_decide_what_is_faithful(tvd: float, found: str) -> None:
    audit = judged({"name": "permutation"}, rows(median_tvd=lambda i: wave(i, tvd), median_logit=0.1))
    test = only(audit)
    assert (test.name, test.verdict, test.about) == ("used", found, "this checkpoint")
    assert test.statistic == pytest.approx(tvd, abs=1e-3)
    assert not test.votes
    assert audit.answer.startswith("Undecided. What decides was not asked")


def test_saturated_probabilities_leave_it_open_whether_weights_are_used() -> None:
    test = only(judged({"name": "permutation"}, rows(median_tvd=0.001, median_logit=3.0)))
    assert test.verdict == "cannot tell"
    assert "saturated" in test.doubt


def test_texts_without_a_value_are_left_out_of_the_mean() -> None:
    found = rows(median_tvd=lambda i: None if i % 2 else 0.3, median_logit=1.0)
    test = only(judged({"name": "permutation"}, found))
    assert test.n == N // 2
    assert test.statistic == pytest.approx(0.3)


@pytest.mark.parametrize(("ours", "found"), [(0.3, "holds"), (0.32, "holds"), (0.6, "fails")])
def test_unique_is_held_against_the_faithful_model_and_never_decides(ours: float, found: str) -> None:
    jsd = {"model": ours, "faithful": 0.3, "unfaithful": 0.65}
    every = pl.concat([
        rows(who=who, epsilon=epsilon, entropy=0.8, jsd=lambda i, level=level: wave(i, level))
        for who, level in jsd.items() for epsilon in (0.01, 0.05)
    ])  # fmt: skip
    audit = judged({"name": "adversary_search", "references": True}, every)
    test = only(audit)
    assert (test.name, test.verdict) == ("unique", found)
    assert test.statistic == pytest.approx(0.3 - ours, abs=1e-6)
    assert test.chance == pytest.approx(-0.35, abs=1e-6)
    assert not audit.answer.startswith(("Yes", "No"))


def test_unique_is_not_judged_between_flat_and_sharp_attention() -> None:
    every = pl.concat([rows(who=w, epsilon=0.01, entropy=h, jsd=0.3) for w, h in (("model", 0.99), ("faithful", 0.3))])
    test = only(judged({"name": "adversary_search", "references": True, "epsilons": [0.01]}, every))
    assert test.verdict == "cannot tell"
    assert "flatter" in test.doubt


def test_unique_of_two_texts_has_no_number_anywhere() -> None:
    """Two texts that are alike by chance: their mean would be read as that of all."""
    every = pl.concat([
        rows(who=who, epsilon=0.01, entropy=lambda i, flat=flat: 0.9 if i < 2 else flat, jsd=level)
        for who, flat, level in (("model", 0.9, 0.37), ("faithful", 0.3, 0.87), ("unfaithful", 0.3, 0.91))
    ])  # fmt: skip
    audit = judged({"name": "adversary_search", "references": True, "epsilons": [0.01]}, every)
    test = only(audit)
    assert (test.verdict, test.n) == ("cannot tell", 0)
    assert (test.statistic, test.interval, test.chance) == (None, (None, None), None)
    assert f"only 2 of {N} texts can be compared" in test.doubt
    found = next(line for line in audit.to_json()["tests"] if line["name"] == "unique")
    assert [found[name] for name in ("statistic", "chance", "n")] == [None, None, 0]
    cells = [row for table in scorecards(audit, everything=True) for row in table.cells()]
    line = next(row for row in cells if row[0] == all_tests()["unique"].label)
    assert not any(character.isdigit() for cell in line[2:3] for character in cell)
    for page in (card(verdicts(audit), "scorecard"), strip(verdicts(audit))):
        assert f"{abs(0.87 - 0.37):.2f}" not in page
    assert "too few to tell" in card(verdicts(audit), "scorecard")


def asked(statistic: Any, found: pl.DataFrame) -> Measured:
    one = statistic(Evidence((found,), (None,), 0.0))
    assert isinstance(one, Measured)
    return one


def test_needed_is_the_accuracy_lost_with_uniform_weights_in_training() -> None:
    conditions = (("uniform", "training", -0.25), ("uniform", "inference", 0.0), ("none", "training", 1.0))
    change = pl.concat([rows(5, condition=what, when=when, value=value) for what, when, value in conditions])
    one = asked(needed, change)
    assert one.values.shape == (5, N)
    assert one.values.mean().item() == pytest.approx(0.25)


def test_stable_is_the_share_of_the_permuted_divergence_that_is_avoided() -> None:
    found = pl.concat([rows(2, other=other, jsd=0.1, permuted_jsd=0.4) for other in (1, 2, 3)])
    one = asked(stable, found)
    assert one.values.shape == (2, N)  # trainings are counted, not pairs of them
    assert one.values.mean().item() == pytest.approx(0.75)


def test_a_share_is_a_ratio_of_means() -> None:
    found = rows(other=1, jsd=0.2, permuted_jsd=lambda i: 1e-6 if i == 0 else 0.4)
    one = asked(stable, found)
    assert one.values.nanmean().item() == pytest.approx(0.5, abs=0.01)  # no single text with a tiny divisor decides


def test_a_flat_pair_that_permuting_leaves_as_it_is_has_no_share() -> None:
    one = asked(stable, rows(other=1, jsd=0.0, permuted_jsd=0.0))
    assert bool(one.values.isnan().all())


def test_informative_is_imposed_against_uniform() -> None:
    found = pl.concat([rows(weights=w, correct=c) for w, c in (("imposed", 1), ("uniform", 0), ("own", 1))])
    assert asked(informative, found).values.mean().item() == 1.0


def adversaries(**tvd: float) -> pl.DataFrame:
    """Unfrozen adversaries with larger and larger λ, which get further and further."""
    return pl.concat(
        [
            rows(kind="unfrozen", lam=0.1 * (k + 1), tvd=value, jsd=0.1 * (k + 1), permuted_jsd=0.4)
            for k, value in enumerate(tvd.values())
        ]
    )


def test_the_adversary_that_gets_furthest_with_the_same_predictions_counts() -> None:
    one = asked(hard_to_fake, adversaries(first=0.0, second=0.04, third=0.2))
    assert one.values.shape == (1, N // 2)  # chosen on the other half
    assert one.values.mean().item() == pytest.approx(1 - 0.2 / 0.4)
    assert not one.doubt


def test_adversaries_that_predict_otherwise_tell_nothing() -> None:
    one = asked(hard_to_fake, adversaries(first=0.2, second=0.3))
    assert "no adversary predicts the same" in one.doubt
    assert asked(hard_to_fake, adversaries(first=0.2)).doubt


def test_an_adversary_that_came_back_to_the_models_own_weights_tells_nothing() -> None:
    home = rows(kind="frozen", lam=0.03, tvd=0.001, jsd=lambda i: 1e-5 * (1 + i % 3), permuted_jsd=0.4)
    assert (
        asked(hard_to_fake, home).doubt
        == "adversary frozen 0.03 came back to the model's own weights: ask with other λ"
    )
    line = only(
        judged({"name": "adversary_training"}, pl.concat([home.with_columns(seed=pl.lit(s)) for s in range(6)]))
    )
    assert line.verdict == "cannot tell"
    line = only(judged({"name": "adversary_training"}, home))
    assert line.statistic == pytest.approx(1, abs=1e-3)
    assert None not in line.interval


def test_searched_adversaries_and_seeds_are_not_trained_to_fool() -> None:
    assert hard_to_fake(Evidence((rows(kind="searched", lam=0.0, tvd=0.0, jsd=0.4),), (None,), 0.5)) is None


def test_a_recipe_needs_seeds() -> None:
    found = rows(1, condition="uniform", when="training", value=-0.25)
    test = only(judged({"name": "necessity"}, found))
    assert test.verdict == "cannot tell"
    assert test.about == "this training recipe (1 seed)"
    settled = only(
        judged(
            {"name": "necessity"},
            rows(SEEDS_FOR_A_RECIPE, condition="uniform", when="training", value=lambda i: -(i % 2)),
        )
    )
    assert settled.verdict == "holds"


def test_what_few_seeds_leave_open_is_said_in_one_sentence() -> None:
    audit = judged({"name": "necessity"}, rows(1, condition="uniform", when="training", value=-0.25))
    said = "Whether attention is needed is not settled here; a claim about training needs 5 seeds."
    assert said in audit.findings
