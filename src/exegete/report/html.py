"""HTML: one file that answers first and supports it after; offline, light and dark, on paper, to a screen reader."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from itertools import count

from exegete.base.elements import Markup, joined, tag
from exegete.report.blocks import figure_block, table_block
from exegete.report.page import Report, Section, anchor, scorecard


def render(report: Report) -> str:
    """The whole page; the same report gives the same bytes."""
    script = _shipped("scheme.js")
    page = tag("html", _head(report, script), _body(report, script), lang="en")
    return f"<!doctype html>\n{page}\n"


def _shipped(name: str) -> str:
    return files("exegete.report").joinpath(name).read_text(encoding="utf8").strip()


def _head(report: Report, script: str) -> Markup:
    # Nothing is fetched and no script runs but ours: a label that slipped through unescaped would still be harmless.
    digest = b64encode(sha256(script.encode()).digest()).decode()
    sources = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{report.title}: {report.question}"),
        tag("meta", name="description", content=report.answer),
        tag("style", Markup(_shipped("style.css"))),
    )


def _body(report: Report, script: str) -> Markup:
    anchors = _anchors(report)
    return tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        tag(
            "header",
            tag("p", report.title, class_="title"),
            tag("button", "Dark", id="scheme", type="button", hidden=True),
        ),
        tag("div", _contents(report, anchors), _main(report, anchors), class_="columns"),
        tag("footer", _cite(report), tag("p", "Made with Exegete.")),
        tag("script", Markup(script)),
    )


def _anchors(report: Report) -> list[str]:
    """An address for every section: its own or its title's, with a number where one is taken."""
    taken = {"answer", "scorecard", "facts", "scheme", "cite"}
    found = []
    for section in report.sections:
        wanted = anchor(section.anchor or section.title)
        name = next(name for n in count(1) if (name := wanted if n == 1 else f"{wanted}-{n}") not in taken)
        taken.add(name)
        found.append(name)
    return found


def _contents(report: Report, anchors: list[str]) -> Markup:
    places = [("answer", "Answer")]
    places += [("scorecard", "Scorecard")] if report.verdicts else []
    places += [("facts", "What was studied")] if report.facts else []
    places += [(name, section.title) for name, section in zip(anchors, report.sections, strict=True)]
    places += [("cite", "How to cite")] if report.cite else []
    return tag(
        "nav",
        tag("ol", *(tag("li", tag("a", title, href=f"#{name}")) for name, title in places)),
        aria_label="Contents",
    )


def _main(report: Report, anchors: list[str]) -> Markup:
    tables, figures = count(1), count(1)
    short, *more = report.answer.split("\n\n")
    said = [tag("p", short, class_="answer"), *(tag("p", part, class_="more") for part in more)]
    answer = tag("section", tag("h1", report.question), *said, id="answer", tabindex="-1")
    card = _scorecard(report, tables)  # first, for its number
    parts = [_section(section, name, tables, figures) for section, name in zip(report.sections, anchors, strict=True)]
    return tag("main", answer, card, _facts(report), *parts)


def _scorecard(report: Report, tables: "count[int]") -> Markup:
    if not report.verdicts:
        return Markup()
    block = table_block(scorecard(report.verdicts), f"Table {next(tables)}")
    return tag("section", tag("h2", "Scorecard"), block, id="scorecard")


def _facts(report: Report) -> Markup:
    if not report.facts:
        return Markup()
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in report.facts.items())
    return tag("section", tag("h2", "What was studied"), tag("dl", *pairs), id="facts")


def _section(section: Section, name: str, tables: "count[int]", figures: "count[int]") -> Markup:
    return tag(
        "section",
        tag("h2", section.title),
        *(tag("p", paragraph) for paragraph in section.paragraphs),
        *(table_block(table, f"Table {next(tables)}") for table in section.tables),
        *(figure_block(figure, f"Figure {next(figures)}") for figure in section.figures),
        id=name,
    )


def _cite(report: Report) -> Markup:
    return joined(tag("h2", "How to cite", id="cite"), tag("pre", report.cite)) if report.cite else Markup()
