"""HTML: one file that answers first and supports it after; offline, light and dark, on paper, to a screen reader."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain, count

from exegete import __version__
from exegete.base.elements import Markup, tag
from exegete.page.section import Report, Section, anchor
from exegete.page.shipped import shipped
from exegete.report.blocks import download
from exegete.report.card import card
from exegete.report.parts import Counters, comparison_part, section_part

SCRIPTS = ("page/scheme.js", "report/report.js")
TAKEN = {"answer", "scorecard", "facts", "scheme", "cite", "untested", "models", "copy", "bibtex"}


def render(report: Report) -> str:
    """The whole page; the same report gives the same bytes."""
    script = "\n".join(map(shipped, SCRIPTS))
    page = tag("html", _head(report, script), _body(report, script), lang="en")
    return f"<!doctype html>\n{page}\n"


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
        tag("style", Markup("\n".join(map(shipped, ("page/style.css", "report/report.css"))))),
    )


def _body(report: Report, script: str) -> Markup:
    sections = [*report.sections, *report.appendix]
    anchors = _anchors(sections)
    return tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        tag(
            "header",
            tag("p", report.title, class_="title"),
            tag("button", "Dark", id="scheme", type="button", hidden=True),
        ),
        tag("div", _contents(report, anchors), _main(report, anchors), class_="columns"),
        tag("footer", tag("p", f"Made with Exegete {__version__}. This file is whole: it needs no network.")),
        tag("script", Markup(script)),
    )


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


def _contents(report: Report, anchors: list[str]) -> Markup:
    there = {
        "answer": ("Answer", True),
        "models": ("Models side by side", report.comparison is not None),
        "scorecard": ("Scorecard", bool(report.verdicts)),
        "untested": ("What was not tested", bool(report.untested)),
    }
    places = [(name, title) for name, (title, wanted) in there.items() if wanted]
    sections = chain(report.sections, report.appendix)
    places += [(name, section.title) for name, section in zip(anchors, sections, strict=True)]
    places += [("facts", "Versions")] if report.facts else []
    places += [("cite", "How to cite")] if report.cite else []
    return tag(
        "nav",
        tag("ol", *(tag("li", tag("a", title, href=f"#{name}")) for name, title in places)),
        aria_label="Contents",
    )


def _main(report: Report, anchors: list[str]) -> Markup:
    return tag("main", *_parts(report, anchors))


def _parts(report: Report, anchors: list[str]) -> Iterator[Markup]:
    """Everything in the order of reading, which is that of the numbers of tables and figures."""
    counters = Counters()
    yield _answer(report)
    if report.comparison is not None:
        yield comparison_part(report.comparison, counters)
    if report.verdicts:
        yield tag("section", tag("h2", "Scorecard"), card(report.verdicts, counters.table()), id="scorecard")
    if report.untested:
        yield _untested(report.untested)
    for section, name in zip(chain(report.sections, report.appendix), anchors, strict=True):
        judged = [line for line in report.verdicts if line.section and anchor(line.section) == name]
        yield section_part(section, name, judged, counters)
    if report.facts:
        yield _facts(report)
    if report.cite:
        yield _cite(report.cite)


def _answer(report: Report) -> Markup:
    """The short answer in large letters, for what and for whom it is given, then the rest of it."""
    short, *more = report.answer.split("\n\n")
    meant = {"Goal": report.goal, "For": report.user}
    pairs = [tag("div", tag("dt", word), tag("dd", said)) for word, said in meant.items() if said]
    return tag(
        "section",
        tag("h1", report.question),
        tag("p", short, class_="answer"),
        tag("dl", *pairs, class_="meant") if pairs else "",
        *(tag("p", *_led(part), class_="more") for part in more),
        id="answer",
        tabindex="-1",
    )


def _led(paragraph: str) -> list[str]:
    """A paragraph whose first words, up to a colon, say what it is about: "Which words mattered: …"."""
    lead, colon, rest = paragraph.partition(": ")
    if not colon or len(lead) > 30 or "." in lead:
        return [paragraph]
    return [tag("strong", f"{lead}:"), f" {rest}"]


def _untested(sentences: Sequence[str]) -> Markup:
    items = (tag("li", sentence) for sentence in sentences)
    return tag("section", tag("h2", "What was not tested"), tag("ul", *items), id="untested")


def _facts(report: Report) -> Markup:
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in report.facts.items())
    return tag("section", tag("h2", "Versions"), tag("dl", *pairs), id="facts")


def _cite(written: str) -> Markup:
    """BibTeX to copy by hand, by a button, or as a file."""
    said = "If you quote these numbers, cite the software and the paper whose test you quote."
    buttons = tag(
        "p",
        tag("button", "Copy", id="copy", type="button", hidden=True),
        " ",
        download(written, "application/x-bibtex;charset=utf-8", "exegete.bib", "BibTeX"),
        class_="files",
    )
    pre = tag("pre", written, id="bibtex", tabindex="0", role="region", aria_label="BibTeX")
    return tag("section", tag("h2", "How to cite"), tag("p", said), pre, buttons, id="cite")
