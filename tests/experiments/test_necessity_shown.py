"""Necessity as it is shown: the paper's table, the figure, and what the report says of models left out."""

import math
from pathlib import Path

import polars as pl
import pytest

from exegete.experiments.common.section import QuestionResult
from exegete.experiments.necessity.figure import changes
from exegete.experiments.necessity.section import headline, sections
from exegete.interventions.uniform import Uniform
from exegete.report.theme import to_svg
from exegete.training.recipe import Companion
from tests.experiments.test_necessity import ASK, attentive, subject
from tests.subjects import cell


def test_vashishths_table() -> None:
    one = ASK.rows(subject(uniform=Companion(attentive(), Uniform())))
    other = one.with_columns(correct=pl.lit(0, pl.Int64), value=pl.lit(0.5))
    rows = pl.concat(
        [cell(one), cell(other, 1), cell(one, task="sst:min_df=2"), cell(one, model="cnn"), cell(other, 1, model="cnn")]
    )
    table = ASK.tables(rows)["vashishth"]
    assert table.columns == ["model", "condition", "when", "small", "small ±", "sst", "sst ±"]
    first = table.filter(pl.col("model") == "bilstm: tanh, softmax")
    assert first["condition"].to_list() == ["own attention", "uniform", "random", "permute", "uniform"]
    assert first["when"].to_list() == ["", "inference", "inference", "inference", "training and inference"]
    assert first.row(0)[3:] == pytest.approx((50, math.sqrt(5000), 100, None))  # seeds with accuracies of 1 and 0
    assert first.row(4)[3:] == pytest.approx((0, math.sqrt(5000), -50, None))
    assert table.height == 10


def test_the_figure_draws_what_was_measured() -> None:
    rows = cell(ASK.rows(subject(uniform=Companion(attentive(), Uniform()), none=Companion(attentive()))))
    summary = ASK.summary(pl.concat([rows, rows.with_columns(task=pl.lit("sst"), model=pl.lit("cnn"))]))
    table = changes(summary)
    assert table.select("task", "model").n_unique() == 4  # two of them without a dot, to keep the grid
    row = table.filter(pl.col("condition") == "uniform", pl.col("when") == "at inference only").row(0, named=True)
    assert row["change"] == pytest.approx(-50)
    svg = to_svg(ASK.figures(pl.DataFrame(), summary)["necessity"])
    assert ">no attention<" in svg
    assert ">in training and inference<" in svg
    assert ">small<" in to_svg(ASK.figures(pl.DataFrame(), ASK.summary(rows))["necessity"])  # one task, one model
    assert "nothing to show" in to_svg(ASK.figures(pl.DataFrame(), summary.head(0))["necessity"])


def test_the_report(tmp_path: Path) -> None:
    rows = cell(ASK.rows(subject(uniform=Companion(attentive(), Uniform()))))
    (tmp_path / "tables").mkdir()
    rows.write_parquet(tmp_path / "tables" / "necessity.parquet")
    ASK.summary(rows).write_parquet(tmp_path / "tables" / "necessity_summary.parquet")
    ASK.tables(rows)["vashishth"].write_csv(tmp_path / "tables" / "necessity_vashishth.csv")
    found = QuestionResult(tmp_path, "necessity", ASK)
    assert headline(found).frame["when"].to_list() == ["in training and inference"]
    (section,) = sections(found)
    assert [table.frame.height for table in section.tables] == [4, 4, 5]
    assert "unfit" in " ".join(section.paragraphs)
    assert "Not trained without any attention: bilstm" in " ".join(section.paragraphs)


def test_a_model_that_was_trained_without_attention_is_not_named(tmp_path: Path) -> None:
    rows = cell(ASK.rows(subject(none=Companion(attentive()))))
    (tmp_path / "tables").mkdir()
    rows.write_parquet(tmp_path / "tables" / "necessity.parquet")
    ASK.summary(rows).write_parquet(tmp_path / "tables" / "necessity_summary.parquet")
    ASK.tables(rows)["vashishth"].write_csv(tmp_path / "tables" / "necessity_vashishth.csv")
    (section,) = sections(QuestionResult(tmp_path, "necessity", ASK))
    assert "Not trained" not in " ".join(section.paragraphs)
