"""Explanations for people: heat maps in the terminal, or one HTML file with all of them."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from exegete.base.files import write_text
from exegete.explanations.difference import Difference
from exegete.explanations.result import Explanation, Unit
from exegete.page.columns import significant
from exegete.page.heatmap_terminal import terminal
from exegete.page.html import page


def show(found: Sequence[Explanation], by: Unit, console: Console) -> None:
    """One after the other, a line between two."""
    for place, each in enumerate(found):
        if place:
            console.print(Rule(style="dim"))
        console.print(terminal(each.heatmap(by, first=place == 0), console))


def show_difference(found: Difference, console: Console) -> None:
    """Both texts as heat maps, then the words in common: the second's score minus the first's."""
    show((found.first, found.second), found.by, console)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=found.drawn().title, title_justify="left")
    for name in (f"{found.by} in common", *(rows[0].name for rows in found.rows.values())):
        table.add_column(name, justify="left" if not table.columns else "right")
    for i, j in found.common:
        gained = (significant(other.values[j] - one.values[i]) for one, other in found.rows.values())
        table.add_row(Text(found.maps[0].words[i]), *gained)
    console.print(Rule(style="dim"), table)


def write_page(path: Path, found: Sequence[Explanation], by: Unit) -> None:
    """One file that works offline."""
    title = f"What explains “{found[0].prediction}”?" if len(found) == 1 else f"{len(found)} predictions explained"
    write_text(path, page(title, *(each.html(by, first=place == 0) for place, each in enumerate(found))))
