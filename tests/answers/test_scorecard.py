"""The audit: verdicts follow from intervals and margins, and its numbers from the rows."""

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from exegete.answers.audit import audit_study, judge_run
from exegete.answers.criteria import load_criteria
from exegete.answers.judge import judge, judge_interval
from exegete.base.errors import ExegeteError, UsageError
from exegete.measures.statistics import Interval
from exegete.runs.engine.local import LocalEngine
from exegete.runs.study import Study
from tests.answers.cards import told


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 100, 0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.09, 0.1, "holds"),
        (-0.3, -0.2, "fails"),
        (-0.2, 0.0, "cannot tell"),
        (math.nan, math.nan, "cannot tell"),
    ],
)
def test_a_verdict_compares_an_interval_with_a_margin(low: float, high: float, expected: str) -> None:
    assert judge_interval(between(low, high), -0.1) == expected


NOISE = "given:file=noise.csv"
PAIRS = (("attention", "gradient"), ("attention", "leave_one_out"), ("gradient", "leave_one_out"))


def made_up(*tau: float, n: int = 200, seeds: int = 1, ceiling: float = 1.0, spread: float = 0.1) -> pl.DataFrame:
    """τ rows with the given means; attention's may have a ceiling of ties."""
    fixed = {"task": "t", "model": "m", "n": 9, "gold": "x", "predicted": "x", "k": "all", "p": 0.01}
    rows = [
        fixed
        | {"seed": s, "example": i, "first": a, "second": b, "measure": measure, "maximum": top}
        | {"value": (mean + spread * math.sin(i * (1 + place))) / (top if measure == "tau_corrected" else 1)}
        for s in range(seeds)
        for place, ((a, b), mean) in enumerate(zip(PAIRS, tau, strict=True))
        for i in range(n)
        for measure in ("tau", "tau_corrected")
        for top in (ceiling if a == "attention" else 1.0,)
    ]
    return pl.DataFrame(rows).with_columns(pl.lit(None, pl.Int64).alias("size"), pl.lit(0.0).alias("chance"))


@pytest.mark.parametrize(
    ("tau", "spread", "expected"),
    [((0.6, 0.5, 0.6), 0.1, "holds"), ((0.2, 0.3, 0.6), 0.1, "fails"), ((0.5, 0.5, 0.6), 1.0, "cannot tell")],
)
def test_agreement_is_judged_against_the_others_agreement(
    study: Study, tau: tuple[float, ...], spread: float, expected: str
) -> None:
    audit = judge({"agreement": made_up(*tau, spread=spread)}, study, load_criteria())
    named = {test.name: test for test in audit.tests}
    agrees = named["agrees"]
    assert agrees.statistic == pytest.approx((tau[0] + tau[1]) / 2 - tau[2], abs=0.05)
    assert agrees.chance == pytest.approx(-tau[2], abs=0.05)
    assert agrees.verdict == named["agrees_beyond_ties"].verdict == expected
    settled = sum(test.verdict != "cannot tell" for test in audit.tests)
    assert agrees.level == pytest.approx(1 - 0.05 / (3 - (settled if expected == "cannot tell" else 0)))
    assert agrees.about == "this checkpoint"
    assert audit.to_json()["tests"][0]["name"] == "agrees"
    assert audit.answer.startswith("Undecided. What decides was not asked")  # it informs
    said = {"holds": "about as well as", "fails": "clearly less than", "cannot tell": "don't settle"}
    assert [verdict for verdict, words in said.items() if words in told(audit)] == [expected]


def test_where_the_others_do_not_agree_nothing_can_be_told(study: Study) -> None:
    audit = judge({"agreement": made_up(0.05, 0.04, 0.06)}, study, load_criteria())
    named = {test.name: test for test in audit.tests}
    assert named["agrees"].verdict == "cannot tell"  # noise would be within the margin, too
    assert "hardly agree with each other" in named["agrees"].doubt
    assert named["beats_chance"].verdict == "holds"


def test_scores_that_somebody_gave_judge_nobody(study: Study) -> None:
    """Noise among the others would lower what they agree on, and attention would pass."""
    rows = made_up(0.3, 0.3, 0.7)
    noise = [
        made_up(0.0, 0.0, 0.0)
        .filter(first="attention", second="gradient")
        .with_columns(first=pl.lit(a), second=pl.lit(b))
        for a, b in (("attention", NOISE), ("gradient", NOISE), ("leave_one_out", NOISE))
    ]
    entry = {"name": "agreement", "against": ["attention", "gradient", "leave_one_out", NOISE]}
    with_it = Study.model_validate(study.model_dump() | {"experiments": [entry]})
    audit = judge({"agreement": pl.concat([rows, *noise])}, with_it, load_criteria())
    assert audit.tests == judge({"agreement": rows}, study, load_criteria()).tests
    assert audit.tests[0].verdict == "fails"


def test_attention_without_any_difference_is_told(study: Study) -> None:
    audit = judge({"agreement": made_up(math.nan, math.nan, 0.7)}, study, load_criteria())
    assert "gives all words of a text the same weight" in told(audit)


def test_a_verdict_that_hangs_on_ties_says_so(study: Study) -> None:
    audit = judge({"agreement": made_up(0.3, 0.3, 0.6, ceiling=0.5)}, study, load_criteria())
    named = {test.name: test for test in audit.tests}
    assert (named["agrees"].verdict, named["agrees_beyond_ties"].verdict) == ("fails", "holds")
    assert "That hangs on ties" in told(audit)


def test_a_handful_of_texts_settles_nothing(study: Study) -> None:
    audit = judge({"agreement": made_up(0.6, 0.6, 0.6, n=5)}, study, load_criteria())
    assert {test.verdict for test in audit.tests} == {"cannot tell"}


def test_undefined_numbers_are_null_in_json(study: Study) -> None:
    rows = made_up(0.6, 0.6, 0.6).with_columns(pl.lit(None, pl.Float64).alias("value"))
    said = judge({"agreement": rows}, study, load_criteria()).to_json()
    assert json.loads(json.dumps(said, allow_nan=False))["tests"][0]["chance"] is None


def test_three_seeds_do_not_settle_a_recipe(study: Study) -> None:
    audit = judge({"agreement": made_up(0.2, 0.2, 0.6, seeds=3)}, study, load_criteria())
    assert audit.tests[0].verdict == "cannot tell"
    assert "recipe" in audit.tests[0].about


def test_an_audit_of_a_run_answers(study: Study, whole: Path, tmp_path: Path) -> None:
    audit = judge({"agreement": pl.read_parquet(whole / "tables" / "agreement.parquet")}, study, load_criteria(), whole)
    assert [test.verdict for test in audit.tests] == ["cannot tell"] * 6  # two models of two seeds
    for projection in ("softmax", "sparsemax"):
        assert f"bilstm (tanh, {projection}) on reviews.csv" in audit.answer
    assert "<table" in audit._repr_html_()
    assert audit.to_pandas()["name"].tolist() == [test.name for test in audit.tests]
    audit.save(tmp_path / "scorecard.csv")
    assert pl.read_csv(tmp_path / "scorecard.csv")["name"].to_list() == [test.name for test in audit.tests]
    assert audit["agreement"].rows.height == pl.read_parquet(whole / "tables" / "agreement.parquet").height


def test_the_scorecard_is_kept_and_younger_tests_have_our_criteria(study: Study, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    found = audit_study(study, run, engine=LocalEngine(1))
    kept = pl.read_csv(run / "tables" / "scorecard.csv")
    assert kept["name"].to_list() == [test.name for test in found.tests]
    assert kept["verdict"].to_list() == [test.verdict for test in found.tests]
    first = found.tests[0]
    assert first.interval == pytest.approx((kept["low"][0], kept["high"][0]), abs=1e-6)
    old = {name: said for name, said in json.loads((run / "criteria.json").read_text()).items() if name != "used"}
    (run / "criteria.json").write_text(json.dumps(old | {"version": 3}))
    again = judge_run(study, run)
    assert (again.criteria_version, again.tests) == (3, found.tests)


def test_criteria_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "criteria.toml"
    path.write_text("version = 2\n[used]\nmargin = 0.2\n")
    mine, ours = load_criteria(path), load_criteria()
    assert (mine.version, mine["used"].margin, mine["used"].question) == (2, 0.2, ours["used"].question)
    assert mine["agrees"] == ours["agrees"]
    path.write_text("[used]\nmargin = 0.2\n")
    with pytest.raises(UsageError, match="version"):
        load_criteria(path)
    path.write_text("version = 2\n[usd]\nmargin = 0.2\n")
    with pytest.raises(UsageError, match="usd"):
        load_criteria(path)
    with pytest.raises(ExegeteError, match="no criteria file"):
        load_criteria(tmp_path / "none.toml")
    with pytest.raises(ExegeteError, match="can't be read as criteria"):
        load_criteria(tmp_path)
    path.write_text('version = 2\n[used]\ncriterion = "it is above {limit}"\n')
    with pytest.raises(UsageError, match="in braces"):
        load_criteria(path)
    path.write_text("version = [")
    with pytest.raises(UsageError, match="not TOML"):
        load_criteria(path)
