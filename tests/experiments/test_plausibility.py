"""Plausibility: rows against the measures and by hand, texts that tell nothing, and what is refused."""

import math
from dataclasses import replace

import polars as pl
import pytest
import torch
from sklearn.metrics import average_precision_score

from exegete.base.errors import ExegeteError, UsageError
from exegete.experiments.common.contract import Subject
from exegete.experiments.plausibility.experiment import Plausibility
from exegete.experiments.plausibility.figure import plausibility_levels
from exegete.measures.statistics import bootstrap_mean
from exegete.report.labels import importance_label
from exegete.report.theme import to_svg
from exegete.tasks.example import Example, Task
from tests.small import SPECS, small_model
from tests.subjects import cell, subject_of, tensors

NAN = math.nan
WORDS = ("a", "b", "c", "d")
EXAMPLES = (
    Example(10, (WORDS,), 0, (0, 1)),
    Example(11, (WORDS,), 1, (3,)),
    Example(12, (WORDS[:3],), 1, ()),  # nobody marked a word
    Example(13, (WORDS[:2],), 0, (0, 1)),  # every word is marked
)
TASK = Task("hand", ("no", "yes"), {"train": (), "test": EXAMPLES}, "by hand")
SCORES: dict[str, list[list[float]]] = {
    "attention": [[0.1, 0.4, 0.4, 0.1], [0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.2, NAN], [0.5, 0.5, NAN, NAN]],
    "gradient_x_input": [[-5, 3, 2, 1], [4, 3, 2, 1], [1, 2, 3, NAN], [1, 2, NAN, NAN]],
}
ASK = Plausibility(methods=("attention", "gradient_x_input", "lime"), draws=4)


def subject(**change: object) -> Subject:
    usual = {
        "task": TASK, "examples": EXAMPLES, "predicted": torch.tensor([0, 0, 1, 0]), "scores": tensors(SCORES),
        "signed": {"attention": False, "gradient_x_input": True}, "refused": {"lime": "not today"},
    }  # fmt: skip
    return subject_of(small_model(SPECS[0], EXAMPLES), **usual | change)  # type: ignore[arg-type]


def values(rows: pl.DataFrame, method: str, measure: str) -> list[float | None]:
    return rows.filter(method=method, measure=measure).sort("example")["value"].to_list()


def test_rows_known_by_hand() -> None:
    rows = ASK.rows(subject())
    assert set(rows["method"]) == {"attention", "gradient_x_input"}  # what is refused is left out
    assert values(rows, "gradient_x_input", "token_f1") == [0.5, 0, None, None]
    assert values(rows, "attention", "token_f1") == [0.5, 1, None, None]  # b and c come first, one of them is marked
    assert values(rows, "gradient_x_input", "iou_f1") == [0, 0, None, None]  # b c against a b: a third
    expected = [
        average_precision_score(marks, SCORES["attention"][i]) for i, marks in ((0, [1, 1, 0, 0]), (1, [0, 0, 0, 1]))
    ]
    assert values(rows, "attention", "auprc")[:2] == pytest.approx(expected)
    told = rows.filter(method="attention", measure="auprc").sort("example")
    assert told["correct"].to_list() == [True, False, True, True]
    assert told["marked"].to_list() == [2, 1, 0, 2]
    assert told["chance"].null_count() == 2


def test_by_size_a_word_against_counts_too() -> None:
    rows = replace(ASK, ranking="magnitude").rows(subject())
    assert values(rows, "gradient_x_input", "token_f1") == [1, 0, None, None]
    assert values(rows, "gradient_x_input", "iou_f1") == [1, 0, None, None]
    assert rows["ranking"].unique().to_list() == ["magnitude"]


def test_k_by_the_mean_share() -> None:
    """Shares of the marked texts: ½, ¼ and 1, on average 7/12."""
    rows = replace(ASK, k="share").rows(subject()).unique("example").sort("example")
    assert rows["k"].to_list() == [2, 2, 2, 1]
    assert ASK.rows(subject()).unique("example").sort("example")["k"].to_list() == [2, 1, 0, 2]


def test_the_summary_recomputed() -> None:
    rows = cell(ASK.rows(subject()))
    summary = ASK.summary(rows)
    assert summary.height == 2 * 3 * 2
    for row in summary.iter_rows(named=True):
        mine = rows.filter(method=row["method"], measure=row["measure"])
        mine = mine.filter("correct") if row["texts"] == "correct" else mine
        defined = mine["value"].drop_nulls()
        assert (row["n"], row["undefined"]) == ((2, 2) if row["texts"] == "all" else (1, 2))
        interval = bootstrap_mean(torch.tensor(defined.to_list()))
        assert row["mean"] == pytest.approx(defined.mean())
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=1e-6)
        assert row["chance"] == pytest.approx(mine["chance"].drop_nulls().mean())


def test_the_table_has_a_column_per_measure() -> None:
    table = ASK.tables(cell(ASK.rows(subject())))["methods"]
    assert {"auprc", "token_f1", "iou_f1"} <= set(table.columns)
    assert table["method"].to_list() == ["attention", "gradient_x_input"]  # best first


def test_the_figure_draws_what_was_measured() -> None:
    summary = ASK.summary(cell(ASK.rows(subject())))
    table = plausibility_levels(summary)
    assert table["column"].unique(maintain_order=True).to_list() == ["average precision", "token F1", "span F1 (IOU)"]
    assert table.filter(column="token F1")["mean"].to_list() == pytest.approx([0.75, 0.25])
    assert f">{importance_label('gradient_x_input')}<" in to_svg(ASK.figures(pl.DataFrame(), summary)["plausibility"])
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["plausibility"])


def test_a_task_without_rationales() -> None:
    plain = tuple(replace(e, rationale=()) for e in EXAMPLES)
    task = replace(TASK, splits={"test": plain})
    with pytest.raises(UsageError, match="task 'hand' has no rationales: choose eraser_movies, sst"):
        ASK.rows(subject(examples=plain, task=task))


def test_a_rationale_beyond_the_text() -> None:
    wrong = (*EXAMPLES[:3], replace(EXAMPLES[3], rationale=(0, 1, 2)))
    with pytest.raises(ExegeteError, match="the rationale of example 13 marks word 2, but the text has 2 words"):
        ASK.rows(subject(examples=wrong, task=replace(TASK, splits={"test": wrong})))


@pytest.mark.parametrize("settings", [{"methods": ()}, {"methods": ("lime", "lime")}, {"draws": 0}])
def test_wrong_settings(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="experiment 'plausibility'"):
        Plausibility(**settings)  # type: ignore[arg-type]
