"""Comparison: every printed number finds its configuration of ours, once for every model that matches."""

import polars as pl
import pytest

from exegete.runs.study import load_study
from exegete.wings.papers.comparison import QUANTITIES, comparison
from exegete.wings.papers.published import read_published

PAPER = "neely_schouten_2020"


def summary(*cells: tuple[str, str]) -> pl.DataFrame:
    """One number for everything that can be asked of some cells; its digits say of what."""
    keys = [(q.second, q.measure, q.k) for q in QUANTITIES.values()] + [("gradient", "fagin", "nonzeros")]
    fixed = {"first": "attention", "low": 0.1, "high": 0.2, "chance": 0.05, "seeds": 3, "significant": 0.7}
    return pl.DataFrame(
        [
            fixed | {"task": t, "model": m, "second": s, "measure": e, "k": k, "class": c, "mean": mean}
            for t, m in cells
            for s, e, k in dict.fromkeys(keys)
            for c, mean in (("0", 0.3), ("1", 0.4), ("all", 0.35))
        ]
    )


def test_the_printed_numbers_are_those_of_the_paper() -> None:
    printed = read_published(PAPER)
    assert printed.height == 16 + 48  # two tables
    row = printed.filter(
        pl.col("dataset") == "IMDB", pl.col("attention") == "tanh", pl.col("projection") == "sparsemax",
        pl.col("quantity") == "topk_tau_loo_knonzero", pl.col("class") == "1",
    )  # fmt: skip
    assert (row["mean"].item(), row["std"].item()) == (0.910, 0.315)
    assert set(printed["quantity"]) == set(QUANTITIES)


def test_ours_stands_beside_the_same_configuration() -> None:
    study = load_study(PAPER)
    table = comparison(study, summary(("sst", study.models[1])))
    assert table is not None
    frame = table.frame
    assert set(frame["dataset"]) == {"SST"}
    assert set(frame.select("attention", "projection").unique().rows()) == {("tanh", "sparsemax")}
    top = frame.row(by_predicate=pl.col("quantity") == "topk_tau_grad_knonzero", named=True)
    assert (top["published_0"], top["published_1"]) == (0.824, 0.784)
    assert (top["ours_0"], top["ours_1"], top["ours_all"], top["fagin"]) == (0.3, 0.4, 0.35, 0.35)


def test_significant_fractions_have_no_interval_of_means() -> None:
    study = load_study(PAPER)
    table = comparison(study, summary(("sst", study.models[0])))
    assert table is not None
    row = table.frame.row(by_predicate=pl.col("quantity") == "sigfrac_grad", named=True)
    assert (row["ours_all"], row["low"], row["chance"]) == (0.7, None, None)


def test_two_models_that_match_are_two_rows() -> None:
    study = load_study(PAPER)
    wider = study.models[0] + ",hidden=64"
    table = comparison(study, summary(("sst", study.models[0]), ("sst", wider)))
    assert table is not None
    assert table.frame.filter(pl.col("quantity") == "tau_grad")["model"].to_list() == [study.models[0], wider]


@pytest.mark.parametrize("change", [{"paper": None}, {"experiments": ({"name": "agreement", "by": "gold"},)}])
def test_nothing_is_compared_that_is_not_comparable(change: dict[str, object]) -> None:
    study = load_study(PAPER).model_copy(update=change)
    assert comparison(study, summary(("sst", study.models[0]))) is None
    assert comparison(load_study(PAPER), summary(("rotten_tomatoes", study.models[0]))) is None
