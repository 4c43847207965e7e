"""Blocks: a table and a figure as HTML, each with its caption, its numbers and a file to take away."""

import re

import polars as pl
from markupsafe import Markup

from exegete.report.columns import SIGNS, Column, outcome_label
from exegete.report.drawing import Drawing, drawing
from exegete.report.markup import file_link, fill_template
from exegete.report.section import Figure, Table, anchor
from exegete.report.tables import to_csv
from exegete.report.theme import INK

LONG = 30  # rows from which a table scrolls in a box of its own
LONGEST = 200  # rows of a figure's numbers that the page shows; the file has them all
OUTCOMES = {sign: outcome for outcome, sign in SIGNS.items()}


def table_block(table: Table, label: str, whole: Table | None = None) -> Markup:
    """A table that scrolls sideways on a narrow screen, with its CSV (or that of the `whole` that it begins)."""
    drawn = {"table": table, "columns": table.shown, "label": label, "long": len(table.frame) > LONG}
    csv = csv_link(whole or table, label)
    return fill_template("report/templates/table.html", **drawn, address=address(label), content=_content, csv=csv)


def _content(column: Column, cell: str) -> str:
    """A cell; a verdict has its colour, and where only its sign is seen its word is heard."""
    sign, _, rest = cell.partition(" ")
    if column.form not in ("verdict", "judged") or sign not in OUTCOMES:
        return cell
    outcome = OUTCOMES[sign]
    return fill_template(
        "report/templates/verdict.html", sign=sign, outcome=outcome, word=outcome_label(outcome), rest=rest
    )


def address(label: str) -> str:
    """Where a block is: with a character that no section's address has, so that a section may be called "Figure 1"."""
    return f"_{anchor(label)}"


def figure_block(figure: Figure, label: str) -> Markup:
    """A drawing with real text, its caption, its SVG, and its numbers in a table that opens."""
    name = address(label)
    drawn = drawing(figure.chart)
    data = drawn.numbers if figure.data is None else figure.data
    inside = drawn.inline(name)
    file = file_link(standalone(inside), "image/svg+xml", f"{anchor(label)}-{anchor(figure.title)}.svg", "SVG")
    image, reading = _apart(inside)
    parts = {"image": _image(figure, drawn, image, name), "svg": file, "reading": reading}
    parts["numbers"] = Markup() if data is None else _numbers(data, figure.title, label)
    return fill_template("report/templates/figure.html", figure=figure, label=label, name=name, **parts)


_TITLE = re.compile(r'<text[^>]* font-style="normal"[^>]*>(.*?)</text>', re.DOTALL)


def _apart(inside: str) -> tuple[str, Markup]:
    """A drawing without the sentence that says how to read it, and that sentence: it wraps on a page, not in SVG."""
    found = " ".join(re.sub(r"<[^>]*>", " ", said) for said in _TITLE.findall(inside))
    return _TITLE.sub("", inside), Markup(" ".join(found.split()))


def standalone(inside: str) -> str:
    """An inline drawing as a file of its own: ordinary ink on white. (To draw it a second time would take seconds.)"""
    opening, _, rest = re.sub(r"var\(--\w+, (#[0-9a-f]{6})\)", r"\1", inside).partition(">")
    return f'{opening}><rect width="100%" height="100%" fill="{INK["paper"]}"/>{rest}'


def _image(figure: Figure, drawn: Drawing, inside: str, name: str) -> Markup:
    """The chart as one image to a screen reader: a title and a sentence."""
    opening, _, rest = inside.partition(">")
    described = drawn.description or figure.caption
    said = Markup('<title id="{0}-title">{1}</title><desc id="{0}-description">{2}</desc>')
    told = said.format(name, figure.title, described)
    return Markup(f'{opening} role="img" aria-labelledby="{name}-title {name}-description">{told}{rest}')


def _numbers(data: pl.DataFrame, title: str, label: str) -> Markup:
    part = f"The first {LONGEST} of {len(data):,} rows; the CSV file has all." if len(data) > LONGEST else ""
    shown = Table(title, data.head(LONGEST), part)
    return table_block(shown, f"Numbers of {label.lower()}", whole=Table(title, data))


def csv_link(table: Table, label: str) -> Markup:
    """The whole table, to take away."""
    return file_link(to_csv(table), "text/csv;charset=utf-8", f"{anchor(label)}-{anchor(table.title)}.csv", "CSV")
