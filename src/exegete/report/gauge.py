"""Gauge: a statistic and its interval against the margin and chance, small enough for a table's cell.

Every test has a scale of its own, from the least to the largest of what is drawn. The side on which a test holds is
shaded, so that a bar that lies wholly on it holds, one wholly off it fails, and one across the margin can't tell.
"""

import math

from exegete.base.elements import Markup, joined, tag
from exegete.page.columns import decimal
from exegete.page.section import Verdict, anchor

WIDTH, HEIGHT, MIDDLE = 200, 30, 15
EDGE = 24  # left free at both ends, so that the side on which a test holds is seen


def gauge(line: Verdict, name: str) -> Markup:
    """One small drawing with a sentence for those who can't see it; nothing where there is no interval."""
    if line.statistic is None or line.bounds is None or not all(map(math.isfinite, line.bounds)):
        return Markup()
    marks = [v for v in (line.statistic, *line.bounds, line.threshold, line.chance) if v is not None]
    low, high = min(marks), max(marks)

    def x(value: float) -> str:
        place = (value - low) / (high - low) if high > low else 0.5
        return f"{EDGE + place * (WIDTH - 2 * EDGE):.1f}"

    return tag(
        "svg",
        tag("title", spoken(line), id=f"{name}-title"),
        _ground(line, x(line.threshold) if line.threshold is not None else None),
        _upright(x(line.chance), "chance") if line.chance is not None else "",
        _upright(x(line.threshold), "margin") if line.threshold is not None else "",
        _bar(x(line.bounds[0]), x(line.bounds[1]), x(line.statistic)),
        class_=f"gauge {anchor(line.verdict)}",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title",
    )


def spoken(line: Verdict) -> str:
    """The drawing in words."""
    low, high = line.bounds or (math.nan, math.nan)
    said = [f"{decimal(line.statistic or 0.0)}, interval {decimal(low)} to {decimal(high)}"]
    said += [f"margin {decimal(line.threshold)}"] if line.threshold is not None else []
    said += [f"chance {decimal(line.chance)}"] if line.chance is not None else []
    return f"{'; '.join(said)}: {line.verdict}"


def _ground(line: Verdict, margin: str | None) -> Markup:
    """The scale, and the side on which the test holds."""
    scale = tag("line", x1="0", x2=str(WIDTH), y1=str(MIDDLE), y2=str(MIDDLE), class_="scale")
    if margin is None or not line.criterion:
        return scale
    wide = f"{WIDTH - float(margin):.1f}"
    return joined(tag("rect", x=margin, y="3", width=wide, height=str(HEIGHT - 6), class_="side"), scale)


def _upright(x: str, kind: str) -> Markup:
    return tag("line", x1=x, x2=x, y1="2", y2=str(HEIGHT - 2), class_=kind)


def _bar(low: str, high: str, mean: str) -> Markup:
    return joined(
        tag("line", x1=low, x2=high, y1=str(MIDDLE), y2=str(MIDDLE), class_="bar"),
        tag("circle", cx=mean, cy=str(MIDDLE), r="5", class_="dot"),
    )
