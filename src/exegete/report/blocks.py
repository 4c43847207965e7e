"""Blocks: a table and a figure as HTML, each with its caption, its numbers and a file to take away."""

import re
from base64 import b64encode

import polars as pl

from exegete.base.elements import Markup, joined, safe, tag
from exegete.page.columns import SIGNS, Column
from exegete.page.section import Figure, Table, anchor
from exegete.page.theme import INK, inline_svg, numbers
from exegete.report.tables import to_csv

LONG = 30  # rows from which a table scrolls in a box of its own
LONGEST = 200  # rows of a figure's numbers that the page shows; the file has them all


def table_block(table: Table, label: str, whole: Table | None = None) -> Markup:
    """A table that scrolls sideways on a narrow screen, with its CSV (or that of the `whole` that it begins)."""
    grid = tag(
        "table",
        tag("caption", tag("strong", f"{label}. {table.title}."), f" {table.caption}"),
        tag(
            "thead", tag("tr", *(tag("th", column.title, scope="col", class_=_align(column)) for column in table.shown))
        ),
        tag("tbody", *(_row(table.shown, cells) for cells in table.cells())),
    )
    boxed = "scroll long" if len(table.frame) > LONG else "scroll"
    scrolled = tag("div", grid, class_=boxed, role="region", aria_label=f"{label}: {table.title}", tabindex="0")
    return tag(
        "div", scrolled, tag("p", csv_link(whole or table, label), class_="files"), class_="block", id=_address(label)
    )


def _row(columns: tuple[Column, ...], cells: list[str]) -> Markup:
    """The first cell names the row, if it is words."""
    drawn = []
    for place, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        heads = place == 0 and not column.numeric
        content = _content(column, cell)
        drawn.append(tag("th" if heads else "td", content, class_=_align(column), scope="row" if heads else None))
    return tag("tr", *drawn)


def _content(column: Column, cell: str) -> Markup:
    """A cell; a verdict has its colour, and where only its sign is seen its word is heard."""
    word = next((word for word, sign in SIGNS.items() if cell.startswith(f"{sign} ")), None)
    if column.form not in ("verdict", "judged") or word is None:
        return safe(cell)
    sign, _, rest = cell.partition(" ")
    heard = "" if rest == word else tag("span", f"{word}: ", class_="unseen")
    return tag("span", tag("span", sign, aria_hidden="true"), " ", heard, rest, class_=f"verdict {anchor(word)}")


def _address(label: str) -> str:
    """Where a block is: with a character that no section's address has, so that a section may be called "Figure 1"."""
    return f"_{anchor(label)}"


def _align(column: Column) -> str | None:
    return "number" if column.numeric else None


def figure_block(figure: Figure, label: str) -> Markup:
    """A drawing with real text, its caption, its SVG, and its numbers in a table that opens."""
    name = _address(label)
    data = numbers(figure.chart) if figure.data is None else figure.data
    drawing = inline_svg(figure.chart, name)
    svg_file = download(standalone(drawing), "image/svg+xml", f"{anchor(label)}-{anchor(figure.title)}.svg", "SVG")
    return tag(
        "figure",
        tag("div", _image(figure, drawing, name), class_="plot"),
        tag("figcaption", tag("strong", f"{label}. {figure.title}."), f" {figure.caption}"),
        tag("p", svg_file, class_="files"),
        "" if data is None else _numbers(data, figure.title, label),
        class_="block",
        id=name,
    )


def standalone(drawing: str) -> str:
    """An inline drawing as a file of its own: ordinary ink on white. (To draw it a second time would take seconds.)"""
    opening, _, rest = re.sub(r"var\(--\w+, (#[0-9a-f]{6})\)", r"\1", drawing).partition(">")
    return f'{opening}><rect width="100%" height="100%" fill="{INK["paper"]}"/>{rest}'


def _image(figure: Figure, drawing: str, name: str) -> Markup:
    """The chart as one image to a screen reader: a title and a sentence."""
    said = f"{name}-title {name}-description"
    opening, _, rest = drawing.partition(">")
    described = str(figure.chart.to_dict(validate=False).get("description", figure.caption))
    inside = joined(tag("title", figure.title, id=f"{name}-title"), tag("desc", described, id=f"{name}-description"))
    return Markup(f'{opening} role="img" aria-labelledby="{said}">{inside}{rest}')


def _numbers(data: pl.DataFrame, title: str, label: str) -> Markup:
    part = f"The first {LONGEST} of {len(data):,} rows; the CSV file has all." if len(data) > LONGEST else ""
    shown = Table(title, data.head(LONGEST), part)
    inside = table_block(shown, f"Numbers of {label.lower()}", whole=Table(title, data))
    return tag("details", tag("summary", "The numbers in this figure"), inside, class_="raw")


def csv_link(table: Table, label: str) -> Markup:
    """The whole table, to take away."""
    return download(to_csv(table), "text/csv;charset=utf-8", f"{anchor(label)}-{anchor(table.title)}.csv", "CSV")


def download(content: str, kind: str, name: str, word: str) -> Markup:
    """A link to a file within the page, so that the page needs no other."""
    address = f"data:{kind};base64,{b64encode(content.encode()).decode()}"
    return tag("a", f"Download {word}", href=address, download=name, aria_label=f"Download {name}")
