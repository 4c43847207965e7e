"""Gauge: a statistic and its interval against the margin and chance, small enough for a table's cell.

Every test has a scale of its own, from the least to the largest of what is drawn. The side on which a test holds is
shaded, so that a bar that lies wholly on it holds, one wholly off it fails, and one across the margin can't tell.
"""

import math

from markupsafe import Markup

from exegete.page.columns import decimal
from exegete.page.html import filled
from exegete.page.section import Verdict

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
    return filled("report/templates/gauge.html", line=line, name=name, spoken=spoken(line), side=side, **size, **places)


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
    return f"{'; '.join(said)}: {line.verdict}"
