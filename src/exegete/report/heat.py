"""Heat maps in a report: the words of a text under two or more rows of weights, to read, to hear and to take away.

Shade is a tint of the ground, so it works on light and dark. The line under a word is whole where it speaks for the
class, dotted where it speaks against it and double where a method doesn't say: print and colour-blind readers lose
nothing. Every word has its number in its title, and all numbers stand in a table that opens.
"""

from collections.abc import Sequence
from html import escape

import polars as pl

from exegete.base.elements import Markup, tag
from exegete.page.heatmap import AGAINST, FOR, SIZE, HeatMap, Row, lines_of
from exegete.page.heatmap_html import number
from exegete.page.section import Table, anchor
from exegete.page.theme import FONT, INK
from exegete.report.blocks import download, table_block

SPOKEN = 5  # words of a row that a screen reader hears with their weights
ACROSS, LETTER, LINE = 84, 7.2, 26  # letters of a line in a file, and pixels
HUES = {"for": "#6fb4e4", "against": "#f39a5c", "size": "#5fc4a4"}  # as on the page's light ground


def heat_block(drawn: HeatMap, label: str) -> Markup:
    """One text: its title, its rows, and files."""
    name = f"{anchor(label)}.svg"
    files = tag("p", download(heat_svg(drawn), "image/svg+xml", name, "SVG"), class_="files")
    return tag(
        "figure",
        tag("figcaption", tag("strong", f"{label}. "), drawn.title),
        *(_row(drawn, row) for row in drawn.rows),
        files,
        _numbers(drawn, label),
        class_="block heat",
        id=f"_{anchor(label)}",
    )


def legend(maps: Sequence[HeatMap]) -> Markup:
    """What hues stand for, once for all maps of a section; plain weights need no word."""
    words = {FOR: "for the class", AGAINST: "against it", SIZE: "matters either way"}
    found = [hue for hue in words if any(hue in drawn.legend for drawn in maps)]
    shown = found if len(found) > 1 else []
    entries = (tag("span", words[hue], class_=f"w {hue}", style="--i:0.8") for hue in shown)
    return tag("p", *entries, "Shade: share of the row’s largest weight.", class_="legend")


def _row(drawn: HeatMap, row: Row) -> Markup:
    words = Markup(" ".join(_word(drawn, row, place) for place in range(len(drawn.words))))
    heard = ", ".join(f"{drawn.words[place]} {number(row.values[place])}" for place in row.top(SPOKEN))
    spoken = tag("span", f"Highest: {heard}. ", class_="unseen")
    return tag("div", tag("p", row.name, class_="who"), tag("p", spoken, words, class_="words"), class_="weights")


def _word(drawn: HeatMap, row: Row, place: int) -> Markup:
    said = f"{drawn.words[place]}: {number(row.values[place])} ({row.name})"
    shade = f"--i:{row.intensity(place):.2f}"
    return tag("span", drawn.words[place], class_=f"w {row.hue(place)}", style=shade, title=said)


def _numbers(drawn: HeatMap, label: str) -> Markup:
    """All weights, a line per word."""
    frame = pl.DataFrame({"word": drawn.words} | {row.name: row.values for row in drawn.rows})
    inside = table_block(Table("All weights, word by word", frame), f"Numbers of {label.lower()}")
    return tag("details", tag("summary", "All weights, word by word"), inside, class_="raw")


def heat_svg(drawn: HeatMap) -> str:
    """The map as a drawing of its own: words in lines, rows below each other, on white."""
    parts, y = [], 6
    for row in drawn.rows:
        parts.append(_text(0, y + 15, row.name, "600"))
        y += LINE
        for places in lines_of([len(word) + 1 for word in drawn.words], ACROSS):
            parts += _line(drawn, row, places, y)
            y += LINE
        y += 8
    size = f'width="{ACROSS * LETTER + 20:.0f}" height="{y}" viewBox="0 0 {ACROSS * LETTER + 20:.0f} {y}"'
    ground = f'<rect width="100%" height="100%" fill="{INK["paper"]}"/>'
    title = f"<title>{escape(drawn.title)}</title>"
    drawing = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{escape(FONT)}" font-size="13">'
        f"{title}{ground}{drawing}</svg>"
    )


def _line(drawn: HeatMap, row: Row, places: range, y: int) -> list[str]:
    """The words of one line, each as wide as its letters on average: `textLength` keeps fonts to it."""
    parts, x = [], 0.0
    for place in places:
        wide = len(drawn.words[place]) * LETTER + 6
        fill = f'fill="{HUES[row.hue(place)]}" fill-opacity="{row.intensity(place):.2f}"'
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LINE - 6}" rx="3" {fill}/>')
        parts.append(_text(x + 3, y + 14, drawn.words[place], "400", wide - 6))
        x += wide + 3
    return parts


def _text(x: float, y: float, words: str, weight: str, wide: float | None = None) -> str:
    length = f' textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs"' if wide else ""
    return f'<text x="{x:.1f}" y="{y}" fill="{INK["ink"]}" font-weight="{weight}"{length}>{escape(words)}</text>'
