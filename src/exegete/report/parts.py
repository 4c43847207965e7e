"""Parts: a section of the page: verdicts, words, method, figures, tables, texts, and further parts of its question."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from exegete.base.elements import Markup, joined, tag
from exegete.page.note import Note
from exegete.page.section import Section, Table, Verdict
from exegete.report.blocks import figure_block, table_block
from exegete.report.card import strip
from exegete.report.heat import heat_block, legend


@dataclass
class Counters:
    """Tables, figures and texts are numbered through the whole page."""

    tables: "count[int]" = field(default_factory=lambda: count(1))
    figures: "count[int]" = field(default_factory=lambda: count(1))
    texts: "count[int]" = field(default_factory=lambda: count(1))

    def table(self) -> str:
        """The next table."""
        return f"Table {next(self.tables)}"

    def figure(self) -> str:
        """The next figure."""
        return f"Figure {next(self.figures)}"

    def text(self) -> str:
        """The next text with its weights."""
        return f"Text {next(self.texts)}"


def section_part(section: Section, name: str, judged: Sequence[Verdict], counters: Counters) -> Markup:
    """One question, with its further parts below it."""
    return tag(
        "section",
        tag("h2", section.title),
        strip(judged),
        _inside(section, counters),
        *(tag("div", tag("h3", part.title), _inside(part, counters), class_="part") for part in section.parts),
        id=name,
    )


def _inside(section: Section, counters: Counters) -> Markup:
    """Words, figures first of what supports them, one table, the others in a drawer, texts."""
    return joined(
        *(tag("p", paragraph) for paragraph in section.paragraphs),
        _note(section.note) if section.note else "",
        *(figure_block(figure, counters.figure()) for figure in section.figures),
        _tables(section.tables, counters),
        legend(section.examples) if section.examples else "",
        *(heat_block(drawn, counters.text()) for drawn in section.examples),
    )


def _tables(tables: Sequence[Table], counters: Counters) -> Markup:
    drawn = [table_block(table, counters.table()) for table in tables]
    if len(drawn) < 2:
        return joined(*drawn)
    titles = "; ".join(table.title for table in tables[1:])
    summary = tag("summary", f"{len(drawn) - 1} more table{'s' if len(drawn) > 2 else ''}: {titles}")
    return joined(drawn[0], tag("details", summary, *drawn[1:], class_="more-tables"))


def _note(note: Note) -> Markup:
    """The method in a box: formula, what misleads, and where more is said."""
    pairs = {"Formula": note.formula, "What misleads": note.misleads}
    rows = (tag("div", tag("dt", word), tag("dd", said)) for word, said in pairs.items())
    more = tag("div", tag("dt", "More"), tag("dd", tag("cite", note.title), f" (docs/{note.page})"))
    return tag("aside", tag("dl", *rows, more), class_="method", aria_label="Method")


def comparison_part(section: Section, counters: Counters) -> Markup:
    """Several models: the table of verdicts, and a small figure per test."""
    return tag(
        "section",
        tag("h2", section.title),
        *(tag("p", paragraph) for paragraph in section.paragraphs),
        *(table_block(table, counters.table()) for table in section.tables),
        tag("div", *(figure_block(figure, counters.figure()) for figure in section.figures), class_="grid"),
        id="models",
    )
