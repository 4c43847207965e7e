"""The README's block: what decides and the answer of what a terminal shows, and nothing between; one text beside it."""

import pytest
from tools.pages.place import ROOT
from tools.pictures import MARKS, beside, last_lines, pairs, written

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


INKS = {"ink": "#000001", "muted": "#000002", "rule": "#000003", "paper": "#000004"}


def test_the_answer_stands_right_of_the_words_and_hues_below() -> None:
    words = '<svg height="120"><rect x="80.0" y="6" width="508.0"/></svg>'
    said = ["It goes some way.", "Read LRP instead."]
    drawn = beside(words, "Which words?", "At most < partly", said, INKS, [("#abcdef", "for it")])
    assert 'viewBox="0 0 910 212"' in drawn  # 14 + 588 + 28 + 280
    assert ">At most &lt; partly.</text>" in drawn
    places = [drawn.index(part) for part in ("Which words?", words, *said, "#abcdef", "for it")]
    assert places == sorted(places)
    assert all(colour in drawn for colour in INKS.values())


@pytest.mark.parametrize(("gamma", "said"), [((0.57, 0.66), "78 to 83"), ((0.7, 0.7), "85"), ((-1.0, 1.0), "0 to 100")])
def test_gamma_is_a_share_of_pairs(gamma: tuple[float, float], said: str) -> None:
    assert pairs(*gamma) == said


def test_the_picture_of_the_readme_is_there_for_light_and_dark_pages() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    for scheme in ("light", "dark"):
        assert f"docs/assets/answered_{scheme}.svg" in readme
        assert (ROOT / "docs" / "assets" / f"answered_{scheme}.svg").is_file()


def test_only_what_lies_between_the_marks_is_written() -> None:
    page = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    assert written(page, "new") == f"before\n{MARKS[0]}\n```text\nnew\n```\n{MARKS[1]}\nafter\n"
