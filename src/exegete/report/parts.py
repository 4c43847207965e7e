"""Parts: a section of the page: verdicts, words, method, figures, tables, texts, and further parts of its question."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from markupsafe import Markup

from exegete.page.html import filled
from exegete.page.section import Section, Verdict
from exegete.report.blocks import figure_block, table_block
from exegete.report.card import strip
from exegete.report.heat import heat_block, legend


class Drawn(NamedTuple):
    """A section with everything in it drawn."""

    said: Section
    tables: list[Markup]
    figures: list[Markup]
    texts: list[Markup]


@dataclass
class Counters:
    """Tables, figures and texts are numbered through the whole page, in the order in which they are drawn."""

    _found: dict[str, "count[int]"] = field(default_factory=dict)

    def next(self, kind: str) -> str:
        """The next of a kind, by its label."""
        return f"{kind} {next(self._found.setdefault(kind, count(1)))}"

    def drawn(self, section: Section) -> Drawn:
        """Everything in a section, numbered."""
        tables = [table_block(table, self.next("Table")) for table in section.tables]
        figures = [figure_block(figure, self.next("Figure")) for figure in section.figures]
        texts = [heat_block(drawn, self.next("Text")) for drawn in section.examples]
        return Drawn(section, tables, figures, [legend(section.examples), *texts] if texts else [])


def section_part(section: Section, name: str, judged: Sequence[Verdict], counters: Counters) -> Markup:
    """One question, with its further parts below it."""
    part, parts = counters.drawn(section), [counters.drawn(part) for part in section.parts]
    return filled("report/templates/section.html", name=name, part=part, parts=parts, strip=strip(judged))


def comparison_part(section: Section, counters: Counters) -> Markup:
    """Several models: the table of verdicts, and a small figure per test."""
    return filled("report/templates/models.html", part=counters.drawn(section))
