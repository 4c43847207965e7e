"""Several models under the same tests: in the order of the study, nothing invented where a test was not asked."""

import polars as pl

from exegete.answers.pages.document import render
from exegete.answers.pages.side_by_side import COLOURS, lines_by_model, models_section
from exegete.report.blocks import table_block
from exegete.report.drawing import drawing
from exegete.report.section import Report
from exegete.report.tables import rich_table
from tests.answers.pages.runs import asked
from tests.answers.pages.test_report_html import Reader

TESTS = [
    asked("faithful", model="average", statistic=-0.1, interval=(-0.2, 0.0), verdict="cannot tell"),
    asked("faithful", model="bilstm"),
    asked("used", model="bilstm", statistic=0.3, interval=(0.2, 0.4), verdict="holds", criterion="above 0.05"),
    asked("needed", model="bilstm", verdict="not testable", statistic=None, interval=(None, None), chance=None),
]
SECTION = models_section(TESTS, ["sst"], ["bilstm", "average"])


def test_one_model_has_nobody_beside_it() -> None:
    assert models_section([asked(), asked("used")], ["sst"], ["bilstm"]) is None
    assert models_section([asked(), asked("known_answer", task="sst:planted=token")], ["sst"], ["bilstm"]) is None
    assert models_section([], ["sst"], ["bilstm"]) is None


def test_verdicts_stand_in_the_order_of_the_study() -> None:
    assert SECTION is not None
    table = SECTION.tables[0]
    assert [column.title for column in table.shown] == [
        "model", "matches the best method", "sensitive to shuffling", "worse without attention"
    ]  # fmt: skip
    assert table.cells() == [
        ["bilstm: tanh, softmax", "✗ −0.200", "✓ 0.300", "○ not testable"],
        ["average: tanh, softmax", "? −0.100", "–", "–"],
    ]


def test_signs_are_heard_as_words() -> None:
    assert SECTION is not None
    drawn = table_block(SECTION.tables[0], "Table 1")
    assert (
        '<span class="verdict fails"><span aria-hidden="true">✗</span> <span class="unseen">fails: </span>−0.200'
        in drawn
    )
    assert '<span class="verdict not-testable"><span aria-hidden="true">○</span> not testable</span>' in drawn
    assert rich_table(SECTION.tables[0]).row_count == 2


def test_a_figure_compares_what_has_numbers() -> None:
    assert SECTION is not None
    assert [figure.title for figure in SECTION.figures] == ["matches the best method"]
    drawn = drawing(SECTION.figures[0].chart).numbers
    assert drawn is not None
    assert drawn["statistic"].to_list() == [-0.2, -0.1]
    assert drawn["threshold"].to_list() == [-0.05, -0.05]
    assert set(drawn["verdict"]) <= set(COLOURS)


def test_nothing_is_drawn_of_nothing() -> None:
    empty = pl.DataFrame(
        {"model": ["a"], "statistic": [None], "verdict": ["not testable"]}, schema_overrides={"statistic": pl.Float64}
    )
    assert "no statistic" in str(lines_by_model(empty, "needed").to_dict())


def test_the_comparison_is_a_landmark_after_the_answer() -> None:
    page = render(Report("t", "q", "a", comparison=SECTION))
    assert page.index('class="answer"') < page.index('<section id="models">')
    assert Reader(page).all("figure")
