"""Heat maps for a terminal, light or dark, with colour or without.

A terminal's ground is not known, so shade can't be a tint of it. Levels 1 and 2 colour a word, 3 and 4 put it on a
chip with its own ink: each stands out more than the one before on any ground. Where there is no colour, marks do it.
"""

from collections.abc import Iterable, Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from exegete.report.heatmap import AGAINST, FOR, LEVELS, MARKS, SIZE, HeatMap, HeatRow, extracts, lines_of

# The first three of the theme's palette: legible on white and near-black; and chips of the same hues for white ink.
HUES = {FOR: "#0877BA", AGAINST: "#D55E00", SIZE: "#009E73"}
CHIPS = {FOR: ("#4A7797", "#0068A8"), AGAINST: ("#9A6A4B", "#B84E00"), SIZE: ("#4F7F70", "#007A58")}
WHOLE = 60  # words up to which every row shows the whole text; beyond, what it ranks first, in context
TOP, AROUND = 5, 4
NO_BREAK = "\N{NO-BREAK SPACE}"
NARROWEST, GAP = 22, 3  # columns of the words at least, and between two columns of the table
INDENT = 2  # of the words below their method
LONGEST = 22  # columns of a method's name, which is folded beyond


def terminal(drawn: HeatMap, console: Console) -> Group:
    """Everything that a person reads, for this console's width and colours."""
    parts: list[RenderableType] = [Text(drawn.title, style="bold")]
    parts += [Text.assemble(("note: ", "yellow"), note) for note in drawn.notes]
    rows = _table(drawn, console) if _room(drawn, console) >= NARROWEST else _stack(drawn, console)
    parts += [Text(), rows, Text(), _legend(drawn, _coloured(console))]
    parts += [Text.assemble((f"{row.name}: ", "yellow"), row.complaint) for row in drawn.rows if row.complaint]
    for place, paragraph in enumerate(drawn.reading):
        asked = (f"{drawn.question} ", "bold") if place == 0 else ""
        parts += [Text(), Text.assemble(asked, paragraph)]
    for paragraph in drawn.small_print:
        parts += [Text(), Text(paragraph, style="dim")]
    return Group(*parts)


def style(hue: str, level: int) -> Style:
    """How a word of one hue and level looks."""
    if level == 0:
        return Style()
    if level <= LEVELS // 2:
        return Style(color=HUES[hue], bold=level == LEVELS // 2)
    chip = CHIPS[hue][level - LEVELS // 2 - 1]
    return Style(color="#FFFFFF", bgcolor=chip, bold=level == LEVELS)


def _coloured(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def _table(drawn: HeatMap, console: Console) -> Table:
    """Method, words, numbers; every row breaks its lines at the same words, so that a word is read down the rows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column("method", overflow="fold", max_width=LONGEST)
    table.add_column(f"{drawn.unit}s", overflow="fold", min_width=NARROWEST)
    for title in drawn.columns:
        table.add_column(Text(title), justify="right", no_wrap=True)
    width = _room(drawn, console)
    for row in drawn.rows:
        numbers = (Text(number) for number in row.numbers)
        table.add_row(
            Text(row.name, style="bold" if row.main else ""), _words(drawn, row, width, _coloured(console)), *numbers
        )
    return table


def _stack(drawn: HeatMap, console: Console) -> Group:
    """A heat map for a narrow console: a method with its numbers, and below it the words."""
    parts: list[RenderableType] = []
    for row in drawn.rows:
        said = ", ".join(
            f"{title} {number}" for title, number in zip(drawn.columns, row.numbers, strict=True) if number
        )
        parts.append(Text.assemble((row.name, "bold" if row.main else ""), (f"  {said}" if said else "", "dim")))
        words = _words(drawn, row, console.width - INDENT, _coloured(console))
        parts.append(Padding(words, (0, 0, 0, INDENT)))
    return Group(*parts)


def _room(drawn: HeatMap, console: Console) -> int:
    """The columns that the other columns of the table leave for the words."""
    columns = [["method", *(row.name for row in drawn.rows)]]
    columns += [[title, *(row.numbers[i] for row in drawn.rows)] for i, title in enumerate(drawn.columns)]
    widest = [max(map(cell_len, cells)) for cells in columns]
    taken = min(LONGEST, widest[0]) + sum(widest[1:]) + GAP * len(widest)
    return console.width - taken


def _words(drawn: HeatMap, row: HeatRow, width: int, coloured: bool) -> Text:
    """The whole text, or the extracts around the words that the row ranks first."""
    if len(drawn.words) <= WHOLE:
        return _lines(_shaded(drawn, row, range(len(drawn.words)), coloured), width)
    shown = extracts(row.top(TOP), len(drawn.words), AROUND)
    pieces: list[Text] = []
    for part in shown:
        pieces += [Text("…", style="dim")] if part.start > 0 else []
        pieces += _shaded(drawn, row, part, coloured)
    pieces += [Text("…", style="dim")] if shown[-1].stop < len(drawn.words) else []
    return _lines(pieces, width)


def _shaded(drawn: HeatMap, row: HeatRow, places: Iterable[int], coloured: bool) -> Iterator[Text]:
    for place in places:
        word = printable(drawn.words[place]) + ("?" if place in drawn.unknown else "")
        if coloured:
            yield Text(word, style=style(row.hue(place), row.level(place)))
        else:
            yield Text(word + row.marks(place))


def printable(word: str) -> str:
    """A word without characters that would steer the terminal."""
    return "".join(c if c.isprintable() else "�" for c in word)


def _lines(pieces: Iterable[Text], width: int) -> Text:
    found = list(pieces)
    lines = lines_of([piece.cell_len for piece in found], width)
    return Text("\n").join(Text(" ").join(found[place] for place in line) for line in lines)


def _legend(drawn: HeatMap, coloured: bool) -> Text:
    """How to read the shades."""
    line = Text()
    for hue, said in drawn.legend.items():
        if coloured:
            line.append_text(Text.assemble(*((f" {level} ", style(hue, level)) for level in range(1, LEVELS + 1))))
        else:
            line.append(f"{MARKS[hue]} … {MARKS[hue] * LEVELS}".replace(" ", NO_BREAK))
        line.append(f" {said}   ", "dim")
    n, units = len(drawn.words), f"{drawn.unit}s"
    short = f" Each row shows the {TOP} of {n:,} {units} that it ranks first, in context." if n > WHOLE else ""
    unknown = f"; ? a {drawn.unit} that the model doesn't know" if drawn.unknown else ""
    return line.append(f"\nShades are fifths of the row's largest score{unknown}.{short}", "dim")
