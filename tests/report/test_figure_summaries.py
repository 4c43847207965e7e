"""The figures of summaries: what is drawn is what was measured, in an order that reads."""

import polars as pl
import pytest

from exegete.experiments.agreement.figure import MAXIMUM, agreement_coefficients, agreement_levels, ties, topk
from exegete.report.theme import to_svg
from tests.report.agreement_frames import agreement_summary


def test_every_pair_is_held_against_its_own_chance() -> None:
    table = agreement_levels(agreement_summary())
    assert table["measure"].unique(maintain_order=True).to_list() == [
        "legacy top-k τ",
        "Fagin top-k τ",
        "bucket top-k τ",
    ]
    assert table["above"].to_list() == pytest.approx([0.2] * len(table))
    assert set(table["series"]) == {"attention – gradient", "random – gradient"}


def test_k_is_in_order() -> None:
    svg = to_svg(topk(agreement_summary()))
    places = [svg.index(f">{k}<") for k in ("3", "10", "length", "support")]
    assert places == sorted(places)


def test_ties_show_softmax_first_and_the_maximum() -> None:
    table = agreement_coefficients(agreement_summary())
    assert table["model"].unique(maintain_order=True).to_list() == ["tanh, softmax", "tanh, sparsemax"]
    assert table.filter(pl.col("coefficient") == MAXIMUM)["value"].to_list() == pytest.approx([0.6] * 4)
    assert table.filter(pl.col("coefficient") == MAXIMUM)["low"].null_count() == 4


def test_nothing_is_a_sentence() -> None:
    empty = agreement_summary().with_columns(mean=pl.lit(None, pl.Float64))
    for chart in (topk(empty), ties(empty), topk(empty.head(0)), ties(empty.head(0))):
        assert "nothing to show" in to_svg(chart)
