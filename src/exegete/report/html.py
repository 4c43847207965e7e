"""HTML: one file that answers first and supports it after; offline, light and dark, on paper, to a screen reader."""

from collections.abc import Iterator, Sequence
from itertools import count

from markupsafe import Markup

from exegete import __version__
from exegete.page.html import file_link, shipped, whole
from exegete.page.section import Report, Section, anchor
from exegete.report.card import card
from exegete.report.parts import Counters, comparison_part, section_part

TAKEN = {"answer", "scorecard", "facts", "scheme", "cite", "untested", "models", "copy", "bibtex"}


def render(report: Report) -> str:
    """The whole page; the same report gives the same bytes."""
    style, script = shipped("page/style.css", "report/report.css"), shipped("page/scheme.js", "report/report.js")
    title = f"{report.title}: {report.question}"
    return whole(
        "report/templates/report.html", title, style, [script], report=report, version=__version__, **_content(report)
    )


def _content(report: Report) -> dict[str, object]:
    """What is not said by the report itself. Parts are drawn in the order of reading: it numbers tables and figures."""
    sections = [*report.sections, *report.appendix]
    named, counters = dict(zip(_anchors(sections), sections, strict=True)), Counters()
    short, *more = report.answer.split("\n\n")
    return {
        "short": short,
        "more": [_led(paragraph) for paragraph in more],
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
