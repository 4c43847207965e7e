"""Card: the scorecard as HTML. A table on a wide screen, a card per test on a narrow one, the same words on both."""

from collections.abc import Iterator, Sequence
from itertools import count, groupby

from markupsafe import Markup

from exegete.page.columns import SIGNS, decimal
from exegete.page.html import filled
from exegete.page.section import Verdict, scorecard
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
    drawn = {"heads": HEADS, "caption": CAPTION, "signs": SIGNS, "said": _said, "beside": _beside}
    csv, silent = csv_link(scorecard(verdicts), label), not all(line.votes for line in verdicts)
    return filled(
        "report/templates/card.html", groups=list(_groups(verdicts)), label=label, csv=csv, silent=silent, **drawn
    )


def _groups(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[tuple[Verdict, Markup]]]]:
    """The lines of every task and model with their drawings, under its name."""
    order = [line.of for line in verdicts]
    places = count(1)
    for of, lines in groupby(sorted(verdicts, key=lambda line: order.index(line.of)), key=lambda line: line.of):
        yield of, [(line, gauge(line, f"_gauge-{next(places)}")) for line in lines]


def _said(line: Verdict) -> str:
    """The statistic and its interval."""
    ends = f" [{decimal(line.bounds[0])}, {decimal(line.bounds[1])}]" if line.bounds else ""
    return f"{decimal(line.statistic or 0.0)}{ends}"


def _beside(line: Verdict) -> str:
    """What it is read against."""
    beside = [f"chance {decimal(line.chance)}"] if line.chance is not None else []
    beside += [f"margin {decimal(line.threshold)}"] if line.threshold is not None else []
    beside += [f"interval at {100 * line.level:.3g} %"] if line.level and line.bounds else []
    return " · ".join(beside)


def strip(verdicts: Sequence[Verdict]) -> Markup:
    """The verdicts of one section, at its head."""
    return filled("report/templates/strip.html", verdicts=verdicts, signs=SIGNS, said=_said) if verdicts else Markup()
