"""Numbers read the same on a page and in a terminal; CSV keeps them exact."""

import io

import polars as pl
from polars.testing import assert_frame_equal
from rich.console import Console

from exegete.report.columns import count, interval, mean_and_spread, number, probability, share, text, verdict
from exegete.report.section import Table, Verdict, scorecard
from exegete.report.tables import rich_table, to_csv

FRAME = pl.DataFrame(
    {
        "model": ["a, [bold]b", 'quote " and\nline', ""],
        "mean": [0.34999, -0.0001, None],
        "std": [0.1, 1 / 3, None],
        "n": [25000, 1, 0],
        "p": [1e-9, 0.04, None],
    }
)


def test_cells_read_as_a_paper_prints_them() -> None:
    row = {
        "low": 0.2134,
        "high": -0.24512,
        "mean": 0.3,
        "std": 0.1,
        "n": 1234567,
        "p": 1e-5,
        "share": 0.583,
        "none": None,
        "nan": float("nan"),
    }
    assert interval("low", "high").cell(row) == "[0.213, −0.245]"
    assert mean_and_spread("mean", "std").cell(row) == "0.300 ± 0.100"
    assert count("n").cell(row) == "1,234,567"
    assert share("share").cell(row) == "58.3 %"
    assert probability("p").cell(row) == "< 0.001"
    assert number("none").cell(row) == number("nan").cell(row) == interval("low", "none").cell(row) == "–"


def test_columns_are_guessed_by_type() -> None:
    shown = Table("t", FRAME).shown
    assert [column.form for column in shown] == ["text", "number", "number", "count", "number"]
    assert Table("t", FRAME).cells()[0] == ["a, [bold]b", "0.350", "0.100", "25,000", "0.000"]


def test_csv_round_trips() -> None:
    back = pl.read_csv(io.StringIO(to_csv(Table("t", FRAME))))
    assert_frame_equal(back, FRAME, check_exact=True)


def printed(table: Table, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(rich_table(table))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_labels_as_they_are() -> None:
    shown = printed(Table("τ [red]", FRAME, "caption [b]", (text("model"), number("mean"), count("n", "texts"))))
    assert "a, [bold]b" in shown
    assert "τ [red]" in shown
    assert "caption [b]" in shown
    assert "25,000" in shown


def test_the_scorecard_says_every_verdict_in_words() -> None:
    card = scorecard(
        [
            Verdict("agreement", verdict="fails", statistic=0.3, interval=(0.2, 0.4), chance=0.0, n=100),
            Verdict("ties", verdict="cannot tell"),
            Verdict("top-k", verdict="holds"),
        ]
    )
    shown = printed(card)
    assert all(words in shown for words in ("✗ fails", "? inconclusive", "✓ holds", "[0.200, 0.400]", "–"))
    assert verdict(settled_by="settled_by") in card.shown


def test_an_empty_scorecard_is_a_table_too() -> None:
    assert scorecard([]).cells() == []
