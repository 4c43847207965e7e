"""The audit: verdicts follow from intervals and margins, and its numbers from the rows."""

import math
from pathlib import Path

import polars as pl
import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.measures.statistics import Interval
from exegete.studies.audit import judge, load_criteria, verdict
from exegete.studies.study import Study


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 100, 0)


@pytest.mark.parametrize(
    ("low", "high", "seeds", "expected"),
    [
        (-0.09, 0.1, 1, "holds"),
        (-0.3, -0.2, 1, "fails"),
        (-0.2, 0.0, 1, "cannot tell"),
        (math.nan, math.nan, 1, "cannot tell"),
        (-0.3, -0.2, 3, "cannot tell"),
        (-0.3, -0.2, 5, "fails"),
    ],
)
def test_a_verdict_compares_an_interval_with_a_margin(low: float, high: float, seeds: int, expected: str) -> None:
    assert verdict(between(low, high), -0.1, seeds) == expected


def made_up(tau: dict[tuple[str, str], float], n: int = 200, seeds: int = 1) -> pl.DataFrame:
    """τ rows with the given means and a little spread that all pairs share."""
    fixed = {"task": "t", "model": "m", "n": 9, "gold": "x", "predicted": "x", "measure": "tau", "k": "all", "p": 0.01}
    return pl.DataFrame(
        [
            fixed | {"seed": s, "example": i, "first": a, "second": b, "value": mean + 0.1 * math.sin(i)}
            for s in range(seeds)
            for (a, b), mean in tau.items()
            for i in range(n)
        ]
    ).with_columns(pl.lit(None, pl.Int64).alias("size"), pl.lit(1.0).alias("maximum"), pl.lit(0.0).alias("chance"))


PAIRS = (("attention", "gradient"), ("attention", "leave_one_out"), ("gradient", "leave_one_out"))


@pytest.mark.parametrize(
    ("tau", "expected"), [((0.6, 0.5, 0.6), "holds"), ((0.2, 0.3, 0.6), "fails"), ((0.5, 0.5, 0.6), "cannot tell")]
)
def test_agreement_is_judged_against_the_others_agreement(study: Study, tau: tuple[float, ...], expected: str) -> None:
    audit = judge(made_up(dict(zip(PAIRS, tau, strict=True))), study, load_criteria())
    agrees, beats = audit.tests
    assert agrees.statistic == pytest.approx((tau[0] + tau[1]) / 2 - tau[2], abs=1e-6)
    assert agrees.chance == pytest.approx(-tau[2], abs=0.01)
    if expected != "cannot tell":
        assert agrees.verdict == expected
    assert beats.verdict == "holds"
    assert agrees.about == "this checkpoint"
    assert audit.to_json()["tests"][0]["name"] == "agrees"


def test_three_seeds_do_not_settle_a_recipe(study: Study) -> None:
    audit = judge(made_up(dict(zip(PAIRS, (0.2, 0.2, 0.6), strict=True)), seeds=3), study, load_criteria())
    assert audit.tests[0].verdict == "cannot tell"
    assert "recipe" in audit.tests[0].about


def test_an_audit_of_a_run_answers(study: Study, whole: Path, tmp_path: Path) -> None:
    audit = judge(pl.read_parquet(whole / "tables" / "agreement.parquet"), study, load_criteria(), whole)
    assert {test.verdict for test in audit.tests} <= {"holds", "fails", "cannot tell"}
    assert study.models[0] in audit.answer
    assert "<table" in audit._repr_html_()
    assert len(audit.to_pandas()) == len(audit.frame)
    audit.save(tmp_path / "summary.csv")
    assert pl.read_csv(tmp_path / "summary.csv").height == audit.frame.height


def test_criteria_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "criteria.toml"
    path.write_text("version = 2\n")
    with pytest.raises(UsageError, match="agrees"):
        load_criteria(path)
    with pytest.raises(ExegeteError, match="no criteria file"):
        load_criteria(tmp_path / "none.toml")
    path.write_text("version = [")
    with pytest.raises(UsageError, match="not TOML"):
        load_criteria(path)
