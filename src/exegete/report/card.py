"""Card: the scorecard as HTML. A table on a wide screen, a card per test on a narrow one, the same words on both."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from exegete.base.elements import Markup, joined, tag
from exegete.page.columns import SIGNS, decimal
from exegete.page.section import Verdict, anchor, scorecard
from exegete.report.blocks import csv_link
from exegete.report.gauge import gauge

HEADS = ("test", "verdict", "statistic and interval", "n", "holds if", "about")
CAPTION = (
    "Dot and bar are the statistic and its interval, at a level that allows for the number of tests. The line is the "
    "margin, and a test holds where the whole bar is on its shaded side. The dotted line is chance: what weights that "
    "know nothing would score. Every test has a scale of its own."
)


def card(verdicts: Sequence[Verdict], label: str) -> Markup:
    """All tests, model by model where there are several, with everything as CSV."""
    silent = " Tests in grey do not decide for this goal." if not all(line.votes for line in verdicts) else ""
    head = tag("tr", *(tag("th", title, scope="col", role="columnheader") for title in HEADS), role="row")
    grid = tag(
        "table",
        tag("caption", tag("strong", f"{label}. Scorecard."), f" {CAPTION}{silent}"),
        tag("thead", head, role="rowgroup"),
        *_groups(verdicts),
        class_="card",
        role="table",  # a browser forgets that it is one where it is shown as cards
    )
    return tag("div", grid, tag("p", csv_link(scorecard(verdicts), label), class_="files"), class_="block")


def _groups(verdicts: Sequence[Verdict]) -> Iterator[Markup]:
    """A body per task and model, each under its name."""
    place = 0
    ordered = sorted(verdicts, key=lambda line: [each.of for each in verdicts].index(line.of))
    for of, lines in groupby(ordered, key=lambda line: line.of):
        rows = [_row(line, f"_gauge-{place + i}") for i, line in enumerate(lines, start=1)]
        place += len(rows)
        said = tag("th", of, scope="rowgroup", colspan=str(len(HEADS)), role="rowheader")
        yield tag("tbody", tag("tr", said, class_="group", role="row") if of else "", *rows, role="rowgroup")


def _row(line: Verdict, name: str) -> Markup:
    cells = (
        (badge(line.verdict), "judged"),
        (_found(line, name), "found"),
        (f"{line.n:,}" if line.n else "–", "number n"),
        (_criterion(line), "criterion"),
        (_about(line), "about"),
    )
    drawn = (tag("td", content, class_=kind, role="cell") for content, kind in cells)
    test = tag("th", _test(line), scope="row", role="rowheader")
    return tag("tr", test, *drawn, class_=None if line.votes else "quiet", role="row")


def badge(verdict: str) -> Markup:
    """Sign, colour and word say the same."""
    return tag("span", f"{SIGNS[verdict]} {verdict}", class_=f"verdict {anchor(verdict)}")


def _test(line: Verdict) -> Markup:
    """Its name, which leads to its section, and its question."""
    name = tag("a", line.label, href=f"#{anchor(line.section)}") if line.section else tag("span", line.label)
    asked = tag("span", line.question, class_="small") if line.question else ""
    return joined(name, asked)


def _found(line: Verdict, name: str) -> Markup:
    if line.statistic is None:
        return tag("span", line.doubt or "no number", class_="small")
    said = decimal(line.statistic)
    said += f" [{decimal(line.bounds[0])}, {decimal(line.bounds[1])}]" if line.bounds else ""
    beside = [f"chance {decimal(line.chance)}"] if line.chance is not None else []
    beside += [f"margin {decimal(line.threshold)}"] if line.threshold is not None else []
    beside += [f"interval at {100 * line.level:.3g} %"] if line.level and line.bounds else []
    return joined(gauge(line, name), tag("span", said, class_="said"), tag("span", " · ".join(beside), class_="small"))


def _criterion(line: Verdict) -> Markup:
    """When it holds, why nothing can be told, and what would settle it."""
    doubt = line.doubt if line.statistic is not None else ""
    return joined(
        tag("span", line.criterion),
        tag("span", tag("strong", "In doubt: "), doubt, class_="small") if doubt else "",
        tag("span", tag("strong", "To settle it: "), line.settle, class_="small") if line.settle else "",
    )


def _about(line: Verdict) -> Markup:
    return joined(
        tag("span", line.about),
        tag("span", line.paper, class_="small") if line.paper else "",
        tag("span", "does not decide", class_="small") if not line.votes else "",
    )


def strip(verdicts: Sequence[Verdict]) -> Markup:
    """The verdicts of one section, at its head."""
    items = (
        tag("li", badge(line.verdict), f" {line.label}", f" · {line.of}" if line.of else "", _number(line))
        for line in verdicts
    )
    return tag("ul", *items, class_="strip", aria_label="Verdicts of this section") if verdicts else Markup()


def _number(line: Verdict) -> str:
    if line.statistic is None or line.bounds is None:
        return ""
    return f": {decimal(line.statistic)} [{decimal(line.bounds[0])}, {decimal(line.bounds[1])}]"
