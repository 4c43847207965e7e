"""Tables for a terminal and for other programs: what the page shows, in characters, and in full precision."""

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from exegete.report.columns import SIGNS
from exegete.report.section import Table

# Colours of the terminal's own palette, legible on light and on dark ground; the sign and the word say the same.
LABEL = 16  # characters of what a line is called that are kept together where a verdict may be broken instead
WORD = 12  # characters of a word that are kept together where a table is narrow
STYLES = {
    "holds": "bold green",
    "fails": "bold red",
    "hangs on": "bold yellow",
    "cannot tell": "bold magenta",
    "not testable": "dim",
}


def rich_table(table: Table) -> RichTable:
    """The table for rich's console; cells are text, so that a label in brackets is not taken for markup."""
    drawn = RichTable(
        title=Text(table.title, style="bold"),
        caption=Text(table.caption) if table.caption else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        show_edge=False,
    )
    drawn.caption_justify = "left"
    rows, judges = list(table.cells()), any(column.form == "verdict" for column in table.shown)
    for place, column in enumerate(table.shown):
        right = column.numeric
        said = [column.title, *(cells[place] for cells in rows)]
        whole = max(map(len, said))
        least = min(LABEL, whole) if judges and not place else whole if judges and right else None
        if least is None and not right:
            least = _longest_word(said)
        drawn.add_column(
            Text(column.title), justify="right" if right else "left", no_wrap=right, overflow="fold", min_width=least
        )
    forms = [column.form for column in table.shown]
    for cells in rows:
        drawn.add_row(
            *(
                Text(cell, style=_style(cell) if form in ("verdict", "judged") else "")
                for cell, form in zip(cells, forms, strict=True)
            )
        )
    return drawn


def _longest_word(cells: list[str]) -> int:
    """What a column needs so that no word is broken, within reason."""
    return min(WORD, max((len(word) for cell in cells for word in cell.split()), default=1))


def _style(cell: str) -> str:
    return next((style for word, style in STYLES.items() if cell.startswith(SIGNS[word])), "")


def to_csv(table: Table) -> str:
    """The whole frame as CSV, numbers as exact as they are; what is undefined is empty."""
    return table.frame.write_csv()
