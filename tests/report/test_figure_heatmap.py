"""Heat maps: shades say what the scores say, in colour and without; words are text, whatever they contain."""

import re
from html import unescape
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.console import Console

from exegete.report.heatmap import AGAINST, FOR, SIZE, HeatMap, HeatRow, Matrix, extracts, lines_of
from exegete.report.heatmap_terminal import CHIPS, HUES, terminal
from exegete.report.markup import block, page_of_blocks
from exegete.report.theme import PALETTE
from tests.report.colours import DEFICIENCIES, contrast, nearest

WORDS = ("a", "fine", "<script>alert(1)</script>", 'x"onmouseover="y', "dull")
SIGNED = HeatRow("ig", (0.1, 1.0, 0.0, 0.5, -0.9), signed=True, numbers=("0.50",), complaint="odd <b>")
SIZES = HeatRow("attention", (0.0, 0.2, 0.1, 0.3, 0.4), signed=False, numbers=("",), main=True)
MATRIX = Matrix(("ig", "attention"), ((1.0, -0.25), (-0.25, None)), "τ")


def drawn(words: tuple[str, ...] = WORDS, rows: tuple[HeatRow, ...] = (SIGNED, SIZES), **more: object) -> HeatMap:
    named = {"columns": ("τ",), "matrix": MATRIX, "question": "May it?", "reading": ("No.", "Because.")} | more
    return HeatMap("Predicted: <i>", words, rows, "good", **named)  # type: ignore[arg-type]


def printed(shown: HeatMap, width: int = 80, colour: bool = False) -> str:
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None, highlight=False
    )
    console.print(terminal(shown, console))
    return out.getvalue()


def test_shades_are_fifths_of_the_largest_score() -> None:
    values = (0.0, 0.19, 0.21, 0.41, 0.61, 0.81, 1.0)
    assert [HeatRow("m", values, True).level(i) for i in range(7)] == [0, 0, 1, 2, 3, 4, 4]
    assert [HeatRow("m", tuple(-2 * v for v in values), True).level(i) for i in range(7)] == [0, 0, 1, 2, 3, 4, 4]


def test_a_row_without_any_score_has_no_shade() -> None:
    row = HeatRow("m", (0.0, 0.0), signed=True)
    assert [row.level(0), row.intensity(1), row.marks(0)] == [0, 0.0, ""]


def test_hues_are_for_against_and_size() -> None:
    assert [SIGNED.hue(1), SIGNED.hue(4), SIZES.hue(4)] == [FOR, AGAINST, SIZE]
    assert set(drawn(rows=(SIZES,)).legend) == {SIZE}
    assert set(drawn(rows=(SIGNED,)).legend) == {FOR, AGAINST}


def test_lines_hold_all_words_in_order() -> None:
    widths = [3, 9, 1, 1, 30, 2]
    lines = lines_of(widths, 12)
    assert [i for line in lines for i in line] == list(range(6))
    assert all(sum(widths[i] for i in line) + len(line) - 1 <= 12 or len(line) == 1 for line in lines)


def test_extracts_show_every_top_word_once() -> None:
    assert extracts([0, 9], 10, 3) == [range(0, 4), range(6, 10)]
    assert extracts([3, 9], 40, 3) == [range(0, 13)]  # the stretches touch


def test_without_colour_marks_say_it() -> None:
    shown = printed(drawn())
    assert "fine++++" in shown
    assert "dull−−−−" in shown
    assert "dull****" in shown
    assert "\x1b" not in shown
    assert "against good" in shown
    assert "May it? No." in shown


def test_colour_needs_no_marks() -> None:
    shown = printed(drawn(), colour=True)
    assert "++" not in shown
    red, green, blue = (int(CHIPS[FOR][1][i : i + 2], 16) for i in (1, 3, 5))
    assert f"48;2;{red};{green};{blue}mfine" in shown


def test_no_color_wins_over_a_terminal() -> None:
    out = StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="truecolor", no_color=True)
    console.print(terminal(drawn(), console))
    assert "fine++++" in out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("n", [3, 40, 500])
def test_nothing_is_wider_than_the_terminal(width: int, n: int) -> None:
    words = tuple(("字" if i % 7 == 0 else "word") * (1 + i % 3) for i in range(n))
    row = HeatRow("leave_one_out", tuple(float(i % 11) - 5 for i in range(n)), signed=True, numbers=("0.50",))
    shown = printed(drawn(words, (row,)), width)
    assert max(map(cell_len, shown.splitlines())) <= width


def test_words_stand_under_each_other() -> None:
    """Every row breaks its lines at the same words, so that methods can be compared down the page."""
    words = tuple(f"w{i}" for i in range(30))
    rows = tuple(HeatRow(f"m{k}", tuple(float((i * k) % 7) for i in range(30)), True) for k in (1, 3))
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed(drawn(words, rows, columns=()), 60, colour=True)).splitlines()
    first, second = (next(i for i, line in enumerate(lines) if line.startswith(f"m{k} ")) for k in (1, 3))
    assert [line[3:] for line in lines[first:second]] == [line[3:] for line in lines[second : 2 * second - first]]


def test_a_long_text_shows_what_each_row_ranks_first() -> None:
    words = tuple(f"w{i}" for i in range(400))
    scores = [0.0] * 400
    scores[200], scores[333] = 1.0, -2.0
    shown = printed(drawn(words, (HeatRow("m", tuple(scores), True),), columns=()))
    assert "w200++" in shown
    assert "w333−−−−" in shown
    assert "w100" not in shown
    assert "…" in shown


def test_a_word_can_not_steer_the_terminal() -> None:
    shown = printed(drawn(("\x1b[31mred", "[bold]b[/bold]"), (HeatRow("m", (1.0, 0.0), True),), columns=()))
    assert "\x1b" not in shown
    assert "[bold]b[/bold]" in shown


def test_html_is_well_formed_and_words_are_text() -> None:
    markup = block(drawn())
    tree = ElementTree.fromstring(markup)
    assert not list(tree.iter("script"))
    assert not any("onmouseover" in element.attrib for element in tree.iter())
    spans = [element for element in tree.iter("span") if "w for" in element.get("class", "")]
    assert any(element.text == WORDS[2] for element in spans)
    assert "<b>" not in markup
    assert "<i>" not in markup


def test_html_has_every_number() -> None:
    tree = ElementTree.fromstring(block(drawn()))
    table = next(details for details in tree.iter("details"))
    numbers = [cell.text for cell in table.iter("td")]
    assert numbers == ["0.1", "0", "1", "0.2", "0", "0.1", "0.5", "0.3", "−0.9", "0.4"]
    titles = [element.get("title", "") for element in tree.iter("span")]
    assert "dull: −0.9 (ig)" in titles
    matrix = next(t for t in tree.iter("table") if t.get("class") == "matrix")
    assert [cell.text for cell in matrix.iter("td")][1:] == ["1.00", "−0.25", "−0.25", "–"]


def test_html_tells_a_screen_reader_the_first_words() -> None:
    markup = block(drawn())
    assert "Highest scores: fine 1, dull −0.9" in markup
    tree = ElementTree.fromstring(markup)
    assert all(cell.get("scope") in ("row", "col") for cell in tree.iter("th"))


def test_a_page_runs_no_script_and_fetches_nothing() -> None:
    whole = page_of_blocks("</title><script>", block(drawn()))
    assert "<script" not in whole
    assert "default-src 'none'" in unescape(whole)
    assert "http" not in re.sub(r"http-equiv", "", whole)


def test_colours_are_the_themes_and_stay_apart() -> None:
    assert tuple(HUES.values()) == PALETTE[:3]
    for deficiency in DEFICIENCIES:
        assert nearest((CHIPS[FOR][1], CHIPS[AGAINST][1]), deficiency) > 0.06  # the two that stand in one row
        if deficiency != "tritan":  # to whom "for" and "size" are near; underlines and the row's other words differ
            assert nearest(tuple(CHIPS[hue][1] for hue in CHIPS), deficiency) > 0.06


@pytest.mark.parametrize("chip", [chip for chips in CHIPS.values() for chip in chips])
def test_chips_are_legible(chip: str) -> None:
    assert contrast(chip, "#ffffff") >= 4.5


def test_the_strongest_shades_are_legible_on_both_grounds() -> None:
    style = next(ElementTree.fromstring(block(drawn())).iter("style")).text or ""
    found = {name: pair for name, *pair in re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", style)}
    for hue in ("for", "against", "size"):
        for ground in (0, 1):
            assert contrast(found["ink"][ground], found[hue][ground]) >= 4.5
