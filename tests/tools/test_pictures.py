"""The README's block: the scorecard and the answer of what a terminal shows, and nothing between."""

import pytest
from tools.pictures import MARKS, last_lines, written

SAID = """Agreement
pair  τ

Scorecard{filled}
test     verdict
reads    ✓ holds
reads and ranks decide.

reads: Does a word act?
ranks: 300 more texts

For a developer of the model:
Yes.

report: runs/audit/report.html
""".replace("{filled}", "   ")  # as a table's title in a terminal


def test_scorecard_and_answer() -> None:
    assert last_lines(SAID) == (
        "Scorecard\ntest     verdict\nreads    ✓ holds\nreads and ranks decide.\n\n…\n\n"
        "For a developer of the model:\nYes.\n\nreport: runs/audit/report.html"
    )


def test_an_output_without_an_answer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no scorecard or no answer"):
        last_lines(SAID.partition("For a")[0])


def test_only_what_lies_between_the_marks_is_written() -> None:
    page = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    assert written(page, "new") == f"before\n{MARKS[0]}\n```text\nnew\n```\n{MARKS[1]}\nafter\n"
