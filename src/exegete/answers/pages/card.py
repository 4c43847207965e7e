"""Card: the scorecard as HTML. A table on a wide screen, a card per test on a narrow one, the same words on both.

What decides comes first. All that informs is folded, by what it looks at, with a count of its verdicts to see before
one opens it.

Beside every test stands a gauge. It has a scale of its own, from the least to the largest of what is drawn. The side on
which a test holds is shaded, so that a bar that lies wholly on it holds, one wholly off it fails, and one across the
margin can't tell.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import count, groupby

from markupsafe import Markup

from exegete.answers.pages.verdicts import by_group
from exegete.report.blocks import csv_link
from exegete.report.columns import SIGNS, decimal
from exegete.report.markup import fill_template
from exegete.report.section import Outcome, Verdict, scorecard

HEADS = ("test", "verdict", "statistic and interval", "n", "holds if", "about")
CAPTION = (
    "Dot and bar are the statistic and its interval, at a level that allows for the number of tests. The line is the "
    "margin, and a test holds where the whole bar is on its shaded side. The dotted line is chance: what weights that "
    "know nothing would score. Every test has a scale of its own. What decides is judged with a tolerance of 0.03 to "
    "0.05, so its bar may reach a little over the line."
)
COUNTED: dict[Outcome, tuple[str, str]] = {  # of one test, and of several
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "hangs on": ("depends on removal", "depend on removal"),
    "cannot tell": ("is inconclusive", "are inconclusive"),
    "not testable": ("is not testable", "are not testable"),
}
CardLines = list[tuple[str, list[tuple[Verdict, Markup]]]]  # by task and model: lines with their gauges


def card(verdicts: Sequence[Verdict], label: str) -> Markup:
    """All tests, model by model where there are several, with everything as CSV."""
    deciding, informing = by_group(verdicts)
    places = count(1)
    parts = [(title, count_verdicts(lines), _groups(lines, places)) for title, lines in informing]
    many = sum(len(lines) for _, lines in informing)
    return fill_template(
        "report/templates/card.html",
        label=label,
        deciding=_groups(deciding, places),
        informing=parts,
        many=f"{many} more tests inform" if many != 1 else "One more test informs",
        csv=csv_link(scorecard(verdicts), label),
        heads=HEADS,
        caption=CAPTION,
        signs=SIGNS,
        said=_said,
        beside=_beside,
    )


def count_verdicts(lines: Sequence[Verdict]) -> str:
    """How many tests have which verdict.

    >>> count_verdicts([Verdict("agrees", verdict="fails"), Verdict("supports", verdict="holds")])
    '1 holds, 1 fails'
    """
    found = Counter(line.verdict for line in lines)
    return ", ".join(
        f"{found[verdict]} {words[found[verdict] > 1]}" for verdict, words in COUNTED.items() if found[verdict]
    )


def _groups(verdicts: Sequence[Verdict], places: "count[int]") -> CardLines:
    """The lines of every task and model with their drawings, under its name, in the order in which they are given."""
    order = [line.of for line in verdicts]
    return [
        (of, [(line, gauge(line, f"_gauge-{next(places)}")) for line in lines])
        for of, lines in groupby(sorted(verdicts, key=lambda line: order.index(line.of)), key=lambda line: line.of)
    ]


def _said(line: Verdict) -> str:
    """The statistic and its interval."""
    ends = f" [{decimal(line.bounds[0])}, {decimal(line.bounds[1])}]" if line.bounds else ""
    return f"{decimal(line.statistic or 0.0)}{ends}"


def _beside(line: Verdict) -> str:
    """What it is read against."""
    beside = [f"chance {decimal(line.chance)}"] if line.chance is not None else []
    beside += [f"margin {decimal(line.threshold)}"] if line.threshold is not None else []
    beside += [f"partly from {decimal(line.partly)}"] if line.partly is not None else []
    beside += [f"interval at {100 * line.level:.3g} %"] if line.level and line.bounds else []
    return " · ".join(beside)


def strip(verdicts: Sequence[Verdict]) -> Markup:
    """The verdicts of one section, at its head."""
    return (
        fill_template("report/templates/strip.html", verdicts=verdicts, signs=SIGNS, said=_said)
        if verdicts
        else Markup()
    )


WIDTH, HEIGHT, MIDDLE = 200, 30, 15
EDGE = 24  # left free at both ends, so that the side on which a test holds is seen


def gauge(line: Verdict, name: str) -> Markup:
    """One small drawing with a sentence for those who can't see it; nothing where there is no interval."""
    if line.statistic is None or line.bounds is None or not all(map(math.isfinite, line.bounds)):
        return Markup()
    drawn = {"mean": line.statistic, "margin": line.threshold, "chance": line.chance}
    drawn |= dict(zip(("low", "high"), line.bounds, strict=True))
    places = _places(drawn)
    margin = places["margin"]
    side = f"{WIDTH - float(margin):.1f}" if margin and line.criterion else ""
    size = {"width": WIDTH, "height": HEIGHT, "middle": MIDDLE}
    return fill_template(
        "report/templates/gauge.html", line=line, name=name, spoken=spoken(line), side=side, **size, **places
    )


def _places(drawn: dict[str, float | None]) -> dict[str, str]:
    """Where every number stands; nothing for one that there isn't."""
    marks = [value for value in drawn.values() if value is not None]
    low, high = min(marks), max(marks)
    shares = {
        name: None if value is None else (value - low) / (high - low) if high > low else 0.5
        for name, value in drawn.items()
    }
    return {name: "" if at is None else f"{EDGE + at * (WIDTH - 2 * EDGE):.1f}" for name, at in shares.items()}


def spoken(line: Verdict) -> str:
    """The drawing in words."""
    low, high = line.bounds or (math.nan, math.nan)
    said = [f"{decimal(line.statistic or 0.0)}, interval {decimal(low)} to {decimal(high)}"]
    said += [f"margin {decimal(line.threshold)}"] if line.threshold is not None else []
    said += [f"chance {decimal(line.chance)}"] if line.chance is not None else []
    return f"{'; '.join(said)}: {line.outcome}"
