"""The README's block: what decides and the answer of what a terminal shows, and nothing between; one text beside it."""

import pytest
from tools.pictures import MARKS, beside, last_lines, written

SAID = """model on task: test accuracy 0.8

What decides{filled}
test       verdict
acts       ✓ holds

15 more tests inform: show them with --all.
Not asked: this, and
that.

Yes. It goes far.

Read LRP.

report: runs/audit/report.html
""".replace("{filled}", "   ")  # as a table's title in a terminal


def test_what_decides_and_the_answer() -> None:
    assert last_lines(SAID) == (
        "What decides\ntest       verdict\nacts       ✓ holds\n\nYes. It goes far.\n\nRead LRP.\n\n"
        "report: runs/audit/report.html"
    )


def test_an_output_without_a_scorecard_is_refused() -> None:
    with pytest.raises(SystemExit, match="no scorecard"):
        last_lines("Yes.")


def test_the_answer_stands_right_of_the_words() -> None:
    words = '<svg height="120"><rect x="80.0" y="6" width="508.0"/></svg>'
    drawn = beside(words, "At most < partly", "It goes some way", "Read LRP instead.")
    assert 'viewBox="0 0 900 132"' in drawn
    assert ">At most &lt; partly.</text>" in drawn
    assert drawn.index("It goes some way.") < drawn.index("Read LRP instead.")


def test_only_what_lies_between_the_marks_is_written() -> None:
    page = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    assert written(page, "new") == f"before\n{MARKS[0]}\n```text\nnew\n```\n{MARKS[1]}\nafter\n"
