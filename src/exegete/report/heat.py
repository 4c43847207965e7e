"""Heat maps in a report: the words of a text under two or more rows of weights, to read, to hear and to take away.

Words look as they do in an explanation (`report.markup`). Every word has its number in its title, and all numbers
stand in a table that opens.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from markupsafe import Markup

from exegete.report.blocks import address, table_block
from exegete.report.heatmap import AGAINST, FOR, SIZE, HeatMap, HeatRow, lines_of
from exegete.report.ink import FONT, INK
from exegete.report.markup import file_link, fill_template
from exegete.report.section import Table, anchor

ACROSS, LETTER, LINE, SIZE_OF_TEXT = 84, 7.2, 26, 13  # letters of a line in a file, and pixels
EMS = {  # how wide letters of a plain sans serif are, of its size; all others are OTHERS wide
    **dict.fromkeys("ijl'|.,:;!", 0.26), **dict.fromkeys("ft ()[]/\\-\"", 0.33), **dict.fromkeys("mwMW@%", 0.83),
    **dict.fromkeys("ckrsvxyz", 0.5), **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ", 0.7),
}  # fmt: skip
OTHERS = 0.56
HUES = {FOR: "#6fb4e4", AGAINST: "#f39a5c", SIZE: "#5fc4a4"}  # as on the page's light ground
DARK_HUES = {FOR: "#0c659f", AGAINST: "#a84c08", SIZE: "#04765a"}
MEANINGS = {FOR: "for the class", AGAINST: "against it", SIZE: "matters either way"}


def heat_block(drawn: HeatMap, label: str) -> Markup:
    """One text: its title, its rows, and files."""
    frame = pl.DataFrame({"word": drawn.words} | {row.name: row.values for row in drawn.rows})
    numbers = table_block(Table("All weights, word by word", frame), f"Numbers of {label.lower()}")
    file = file_link(heat_svg(drawn), "image/svg+xml", f"{anchor(label)}.svg", "SVG")
    return fill_template(
        "report/templates/heat.html", drawn=drawn, label=label, address=address(label), svg=file, numbers=numbers
    )


def legend(maps: Sequence[HeatMap]) -> Markup:
    """What hues stand for, once for all maps of a section; plain weights need no word."""
    found = {hue: said for hue, said in MEANINGS.items() if any(hue in drawn.legend for drawn in maps)}
    return fill_template("report/templates/legend.html", entries=found if len(found) > 1 else {})


class _Word(NamedTuple):
    """A word in a file, about as wide as its letters: `textLength` keeps fonts to it."""

    text: str
    x: float
    y: int
    wide: float
    hue: str
    shade: float


def text_width(words: str, size: float = SIZE_OF_TEXT) -> float:
    """How many pixels words take in a line, about."""
    return size * sum(EMS.get(letter, OTHERS) for letter in words)


def heat_svg(drawn: HeatMap, ink: Mapping[str, str] = INK, hues: Mapping[str, str] = HUES) -> str:
    """The map as a drawing of its own: words in lines, rows below each other, on white unless another ink is given."""
    lines = lines_of([len(word) + 1 for word in drawn.words], ACROSS)
    tall = LINE * (1 + len(lines)) + 8
    rows = [
        (row.name, 21 + i * tall, list(_words(drawn, row, lines, 6 + i * tall, hues)))
        for i, row in enumerate(drawn.rows)
    ]
    size = {"width": f"{ACROSS * LETTER + 20:.0f}", "height": 6 + len(rows) * tall}
    look = {"ink": ink["ink"], "paper": ink["paper"], "font": FONT, "font_size": SIZE_OF_TEXT}
    return fill_template("report/templates/heat.svg", title=drawn.title, rows=rows, **size, **look)


def _words(drawn: HeatMap, row: HeatRow, lines: Sequence[range], top: int, hues: Mapping[str, str]) -> Iterator[_Word]:
    for below, places in enumerate(lines, start=1):
        x = 0.0
        for place in places:
            word, hue = drawn.words[place], hues[row.hue(place)]
            across = text_width(word) + 6
            yield _Word(word, x, top + below * LINE, across, hue, row.intensity(place))
            x += across + 3
