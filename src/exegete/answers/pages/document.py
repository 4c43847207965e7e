"""HTML: one file that answers first and supports it after; offline, light and dark, on paper, to a screen reader.

A section has verdicts, words, its method, figures, tables, texts, and further parts of its question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from markupsafe import Markup

from exegete import __version__
from exegete.answers.pages.card import card, strip
from exegete.report.blocks import figure_block, table_block
from exegete.report.heat import heat_block, legend
from exegete.report.markup import file_link, fill_template, read_shipped, whole
from exegete.report.section import Report, Section, Verdict, anchor

TAKEN = {"findings", "answer", "scorecard", "facts", "scheme", "cite", "untested", "models", "copy", "bibtex"}


class DrawnSection(NamedTuple):
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

    def drawn(self, section: Section) -> DrawnSection:
        """Everything in a section, numbered."""
        tables = [table_block(table, self.next("Table")) for table in section.tables]
        figures = [figure_block(figure, self.next("Figure")) for figure in section.figures]
        texts = [heat_block(drawn, self.next("Text")) for drawn in section.examples]
        return DrawnSection(section, tables, figures, [legend(section.examples), *texts] if texts else [])


def section_part(section: Section, name: str, judged: Sequence[Verdict], counters: Counters) -> Markup:
    """One question, with its further parts below it."""
    part, parts = counters.drawn(section), [counters.drawn(part) for part in section.parts]
    return fill_template("report/templates/section.html", name=name, part=part, parts=parts, strip=strip(judged))


def comparison_part(section: Section, counters: Counters) -> Markup:
    """Several models: the table of verdicts, and a small figure per test."""
    return fill_template("report/templates/models.html", part=counters.drawn(section))


def render(report: Report) -> str:
    """The whole page; the same report gives the same bytes."""
    style, script = (
        read_shipped("report/style.css", "report/report.css"),
        read_shipped("report/scheme.js", "report/report.js"),
    )
    title = f"{report.title}: {report.question}"
    return whole(
        "report/templates/report.html", title, style, [script], report=report, version=__version__, **_content(report)
    )


def _content(report: Report) -> dict[str, object]:
    """What is not said by the report itself. Parts are drawn in the order of reading: it numbers tables and figures."""
    sections = [*report.sections, *report.appendix]
    named, counters = dict(zip(_anchors(sections), sections, strict=True)), Counters()
    short, *more = report.answer.split("\n\n")
    graded = bool(report.grade) and short.startswith(report.grade)
    return {
        "grade": f"{report.grade}." if graded else "",
        "short": short.removeprefix(report.grade).lstrip(". ") if graded else short,
        "read": [_led(paragraph) for paragraph in more[:graded]],
        "more": [_led(paragraph) for paragraph in more[graded:]],
        "first": figure_block(report.first, counters.next("Figure")) if report.first else "",
        "findings": [_led(paragraph) for paragraph in report.findings],
        "meant": {word: said for word, said in {"Goal": report.goal, "For": report.user}.items() if said},
        "contents": list(_contents(report, named)),
        "models": comparison_part(report.comparison, counters) if report.comparison else "",
        "card": card(report.verdicts, counters.next("Table")) if report.verdicts else "",
        "sections": [_section(report, name, section, counters) for name, section in named.items()],
        "bibtex": file_link(report.cite, "application/x-bibtex;charset=utf-8", "exegete.bib", "BibTeX"),
    }


def _section(report: Report, name: str, section: Section, counters: Counters) -> Markup:
    judged = [line for line in report.verdicts if line.section and anchor(line.section) == name]
    return section_part(section, name, judged, counters)


def _anchors(sections: Sequence[Section]) -> list[str]:
    """An address for every section: its own or its title's, with a number where one is taken."""
    taken = set(TAKEN)
    found = []
    for section in sections:
        wanted = anchor(section.anchor or section.title)
        name = next(name for n in count(1) if (name := wanted if n == 1 else f"{wanted}-{n}") not in taken)
        taken.add(name)
        found.append(name)
    return found


def _contents(report: Report, sections: dict[str, Section]) -> Iterator[tuple[str, str]]:
    """Addresses and titles in the order of reading."""
    there = {
        ("answer", "Answer"): True,
        ("models", "Models side by side"): report.comparison is not None,
        ("scorecard", "Scorecard"): bool(report.verdicts),
        ("findings", "What else was found"): bool(report.findings),
        ("untested", "What was not tested"): bool(report.untested),
        **{(name, section.title): True for name, section in sections.items()},
        ("facts", "Versions"): bool(report.facts),
        ("cite", "How to cite"): bool(report.cite),
    }
    return (place for place, wanted in there.items() if wanted)


def _led(paragraph: str) -> tuple[str, str]:
    """A paragraph whose first words, up to a colon, say what it is about: "Which words mattered: …"."""
    lead, colon, rest = paragraph.partition(": ")
    return (lead, rest) if colon and len(lead) <= 30 and "." not in lead else ("", paragraph)
