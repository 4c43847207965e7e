"""Every class has mass 1, and every value a bin."""

import polars as pl
import pytest

from exegete.experiments.agreement.figure import BINS, coefficient_masses, histogram
from exegete.report.theme import PALETTE
from exegete.report.violin import OTHERS
from tests.report.agreement_frames import agreement_rows


def test_masses_sum_to_one_for_every_class() -> None:
    table = coefficient_masses(agreement_rows())
    groups = table.group_by("panel", "pair", "class").agg(pl.col("mass").sum(), pl.len(), pl.col("n").first())
    assert len(groups) == 2 * 3 * 2  # models, pairs without noise, classes
    assert groups["mass"].to_list() == pytest.approx([1.0] * len(groups))
    assert set(groups["len"]) == {BINS}
    assert set(groups["n"]) == {29, 30}  # one text is undefined


def test_bins_are_those_of_the_paper() -> None:
    values = [-1.0, -0.95, 0.0, 1.0]
    rows = (
        agreement_rows(5, ("only",))
        .filter(pl.col("first") == "attention")
        .with_columns(pl.Series("value", [*values, None] * 4))
    )
    table = coefficient_masses(rows).filter(
        pl.col("mass") > 0, pl.col("pair") == "attention – gradient", pl.col("panel") == "tanh, softmax"
    )
    assert table["low"].to_list() == pytest.approx([-1, 0, 1 - 2 / BINS])
    assert table["mass"].to_list() == pytest.approx([0.5, 0.25, 0.25])


def test_more_classes_than_colours_are_pooled() -> None:
    names = tuple(f"class {i}" for i in range(9))
    table = coefficient_masses(agreement_rows(90, names))
    assert table["class"].n_unique() == len(PALETTE)
    assert OTHERS in table["class"]


def test_many_tasks_are_no_trouble() -> None:
    rows = pl.concat([agreement_rows(6, task=f"task_{i}") for i in range(14)])
    assert len(next(iter(histogram(rows).to_dict()["datasets"].values()))) > 5000


def test_nothing_is_a_sentence() -> None:
    assert "nothing to show" in str(histogram(agreement_rows().head(0)).to_dict())
