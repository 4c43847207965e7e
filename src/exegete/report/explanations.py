"""Explanations for people: heat maps in the terminal, or one HTML file with all of them."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from exegete.base.files import write_text
from exegete.explanations.result import Explanation, Unit
from exegete.page.heatmap_terminal import terminal
from exegete.page.html import page


def show(found: Sequence[Explanation], by: Unit, console: Console) -> None:
    """One after the other, a line between two."""
    for place, each in enumerate(found):
        if place:
            console.print(Rule(style="dim"))
        console.print(terminal(each.heatmap(by, first=place == 0), console))


def write_page(path: Path, found: Sequence[Explanation], by: Unit) -> None:
    """One file that works offline."""
    title = f"What explains “{found[0].prediction}”?" if len(found) == 1 else f"{len(found)} predictions explained"
    write_text(path, page(title, *(each.html(by, first=place == 0) for place, each in enumerate(found))))
