"""What predicts that attention may be read: declared before, computed again by hand, and kept as it is today."""

from pathlib import Path

import polars as pl
import pytest
from scipy.stats import t
from tools.readable import OUTCOMES, PREDICTORS, drawn, models, relations

from exegete.report.theme import to_svg
from exegete.runs.study import load_study

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "readable"


def ranks(values: list[float]) -> list[float]:
    """Mean places of tied values."""
    return [sum(v < x for v in values) + (values.count(x) + 1) / 2 for x in values]


def rho(a: list[float], b: list[float]) -> float:
    """Spearman's: Pearson's of the ranks."""
    x, y = ranks(a), ranks(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    top = sum((i - mx) * (j - my) for i, j in zip(x, y, strict=True))
    return float(top / (sum((i - mx) ** 2 for i in x) * sum((j - my) ** 2 for j in y)) ** 0.5)


def test_relations_are_those_of_a_loop_over_tasks() -> None:
    found = models(KEPT)
    told = relations(found)
    assert told.select("predictor", "outcome").rows() == [(p, o) for p in PREDICTORS for o in OUTCOMES]
    for row in told.iter_rows(named=True):
        both = found.drop_nulls([row["predictor"], row["outcome"]])
        by_task = [
            rho(part[row["predictor"]].to_list(), part[row["outcome"]].to_list()) for part in both.partition_by("task")
        ]
        mean = sum(by_task) / len(by_task)
        error = (sum((r - mean) ** 2 for r in by_task) / (len(by_task) - 1) / len(by_task)) ** 0.5
        half = t.ppf(0.975, len(by_task) - 1) * error
        assert row["models"] == both.height
        assert row["rho"] == pytest.approx(mean)
        assert (row["low"], row["high"]) == pytest.approx((max(-1, mean - half), min(1, mean + half)))


def test_numbers_of_a_model_are_those_of_the_tables() -> None:
    row = models(KEPT).filter(task="sst", model="bilstm:hidden=32,vectors=glove-50").row(0, named=True)
    need = pl.read_csv(KEPT / "necessity_summary.csv").filter(task="sst", model=row["model"]).row(0, named=True)
    assert row["reliance"] == pytest.approx(need["before"] - need["after"], abs=1e-6)
    own = pl.read_csv(KEPT / "mediation_summary.csv").filter(task="sst", model=row["model"], method="attention")
    assert row["ranks"] == pytest.approx(sum(own["ranks"]) / own.height)
    assert own.height == 8  # specifications


def test_what_is_kept_is_of_today_and_declared_in_the_study() -> None:
    found = models(KEPT)
    assert to_svg(drawn(found, relations(found))) == (ROOT / "docs" / "assets" / "readable.svg").read_text(
        encoding="utf8"
    )
    assert pl.read_csv(KEPT / "readable_relations.csv")["rho"].to_list() == pytest.approx(
        relations(found)["rho"].to_list(), abs=1e-6
    )
    said = " ".join(load_study("readable").notes)
    assert all(name in said for name in PREDICTORS)
