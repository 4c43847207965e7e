"""Explanations for people: heat maps in the terminal, or one HTML file with all of them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from exegete.answers.difference import Difference
from exegete.answers.explanation import Explanation, Unit
from exegete.base.files import write_text
from exegete.report.columns import significant
from exegete.report.heatmap_terminal import printable, terminal
from exegete.report.markup import page_of_blocks

GAP = 3  # columns between two columns of a table


def show(found: Sequence[Explanation], by: Unit, console: Console) -> None:
    """One after the other, a line between two."""
    for place, each in enumerate(found):
        if place:
            console.print(Rule(style="dim"))
        console.print(terminal(each.heatmap(by, first=place == 0), console))


def show_difference(found: Difference, console: Console) -> None:
    """Both texts as heat maps, then the words in common: the second's score minus the first's."""
    show((found.first, found.second), found.by, console)
    console.print(Rule(style="dim"), Text(found.drawn().title, style="bold"))
    words = [printable(found.maps[0].words[i]) for i, _ in found.common]
    first = min(max(map(cell_len, (*words, found.by))), console.width // 3)
    columns = {
        one.name: [significant(other.values[j] - one.values[i]) for i, j in found.common]
        for one, other in found.rows.values()
    }
    for names in _fitting(columns, console.width - first):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, GAP - 1, 0, 0))
        table.add_column(found.by, overflow="fold", width=first)
        for name in names:
            table.add_column(Text(name), justify="right", width=_least(name, columns[name]))
        for word, *gained in zip(words, *(columns[name] for name in names), strict=True):
            table.add_row(Text(word), *gained)
        console.print(Text(), table)


def _fitting(columns: Mapping[str, Sequence[str]], width: int) -> Iterator[list[str]]:
    """The names of as many columns as stand side by side, then those of the next ones."""
    names: list[str] = []
    left = width
    for name, cells in columns.items():
        needed = GAP + _least(name, cells)
        if names and needed > left:
            yield names
            names, left = [], width
        names.append(name)
        left -= needed
    if names:
        yield names


def _least(name: str, cells: Sequence[str]) -> int:
    """How wide a column must be: its longest number, or the longest word of its name."""
    return max(map(cell_len, (*cells, *name.split())))


def write_page(path: Path, found: Sequence[Explanation], by: Unit) -> None:
    """One file that works offline."""
    title = f"What explains “{found[0].prediction}”?" if len(found) == 1 else f"{len(found)} predictions explained"
    write_text(path, page_of_blocks(title, *(each.html(by, first=place == 0) for place, each in enumerate(found))))
