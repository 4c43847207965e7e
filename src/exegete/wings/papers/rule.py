"""Rule: when a printed number counts as reproduced, in one place.

Let [l, h] be our 95 % interval (over texts or seeds, of a share of texts the exact one; the number alone where there is
none), m the margin, p the printed number and r the reference that the quantity is about (no correlation, no change,
chance, or the row that the table sets beside it). The margin is what another training of the same model may move a
number by; the printed one is mostly a single training. It is stated per quantity, from what our own seeds do; where the
paper prints a deviation over runs, m is at least twice that. Where ours is a single training too, it is √2 times as
large.

- *reproduced*: l − m ≤ p ≤ h + m. Only for the paper's own data, and only if (h − l) / 2 is no more than the quantity's
  resolution: an interval that holds everything reproduces nothing. The number may be reproduced and mean something
  else: where p and [l, h] lie on different sides of r, the reason says so.
- *direction only*: not reproduced, but p and all of [l, h] lie on the same side of r, p further than m: nearer, another
  training might have put it on the other side. On stand-in data and of a claim in words nothing better is possible.
- *deviates*: neither.
- *too coarse to tell*: l − m ≤ p ≤ h + m, but l − m ≤ r ≤ h + m, too, so that a paper that printed "no effect" would
  have been reproduced as well, and not even the direction can be told. Where the paper's claim is that there is no
  effect, the row stays *reproduced*, and the reason says which effect would not have been seen.
- *cannot tell*: p lies within, but our interval is wider than the resolution; or ours is not worth a verdict: a model
  that has not learnt the task, an adversary that stayed where it began, a trend over trainings that chance would give
  (p > 0.05); or a claim in words is neither borne out nor contradicted by [l, h].
- *not run*: our data allow it, and there is no result here.
- *impossible*: data or people that can't be had here.
- *not compared*: a setting or a sum of other numbers, no result of its own.
"""

from dataclasses import dataclass
from typing import Literal

Standing = Literal[
    "reproduced", "direction only", "deviates", "cannot tell", "too coarse to tell", "not run", "impossible",
    "not compared",
]  # fmt: skip
VERDICTS: tuple[Standing, ...] = (
    "reproduced", "direction only", "deviates", "cannot tell", "too coarse to tell", "not run", "impossible",
    "not compared",
)  # fmt: skip
RUNS = 2.0  # printed deviations between runs that count as noise
SIGNIFICANT = 0.05  # p over trainings, where a number rests on few of them
LEARNT = 0.05  # accuracy above the most frequent class, below which a model has learnt little


@dataclass(frozen=True)
class Ours:
    """What we found for a printed number, in the paper's unit."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def side(self, reference: float) -> int:
        """1 if all of it lies above the reference, −1 if below, 0 if neither."""
        return int(self.low > reference) - int(self.high < reference)


@dataclass(frozen=True)
class Yardstick:
    """How near is near enough."""

    tolerance: float = 0.0
    resolution: float | None = None
    reference: float | None = None  # of the printed number
    ours: float | None = None  # the reference of ours, where it is another number
    stand_in: bool = False
    no_effect: bool = False  # whether the paper's claim is that there is none

    @property
    def our_reference(self) -> float | None:
        """The level that our number is about."""
        return self.reference if self.ours is None else self.ours


def judge_number(printed: float, ours: Ours, by: Yardstick) -> tuple[Standing, str]:
    """The verdict on a printed number, and why where that is not plain.

    >>> judge_number(0.34, Ours(0.31, 0.28, 0.33), Yardstick(0.05, 0.15, 0.0))[0]
    'reproduced'
    >>> judge_number(0.60, Ours(0.31, 0.28, 0.33), Yardstick(0.05, 0.15, 0.0))[0]
    'direction only'
    >>> judge_number(0.04, Ours(0.03, 0.01, 0.05), Yardstick(0.05, 0.15, 0.0))[0]  # 0 would have been reproduced, too
    'too coarse to tell'
    """
    low, high = ours.low - by.tolerance, ours.high + by.tolerance
    counts = low <= printed <= high and not by.stand_in
    coarse = counts and by.reference is not None and low <= by.reference <= high
    known = by.reference is not None and by.our_reference is not None
    side = ours.side(by.our_reference or 0.0) if known else 0
    apart = printed - (by.reference or 0.0)
    theirs = _sign(apart) if abs(apart) > by.tolerance else 0
    opposite = "ours lies on the other side of the reference" if side * _sign(apart) < 0 else ""
    if counts and by.resolution is not None and ours.half > by.resolution:
        return "cannot tell", f"our interval is ± {ours.half:.3g}, wider than {by.resolution:g}"
    if counts and (by.no_effect or not coarse):
        unseen = f"no effect is what is printed: one of less than {by.tolerance:.3g} would not be seen"
        return "reproduced", unseen if coarse else opposite
    if not known:
        return ("cannot tell", "other data, and no direction to judge") if by.stand_in else ("deviates", "")
    if side and side == theirs:
        return "direction only", "other data than the paper's" if by.stand_in else ""
    if coarse:
        return "too coarse to tell", opposite
    return "deviates", "" if side else "our interval holds the reference"


def judge_words(sign: str, ours: Ours, by: Yardstick) -> tuple[Standing, str]:
    """The verdict on a claim without a number: above, below, not below or at the reference, within the tolerance."""
    reference, margin = by.our_reference or 0.0, by.tolerance
    borne_out, contradicted = {
        "above": (ours.low > reference, ours.high < reference),
        "below": (ours.high < reference, ours.low > reference),
        "not below": (ours.low >= reference - margin, ours.high < reference - margin),
        "at": (
            reference - margin <= ours.low and ours.high <= reference + margin,
            ours.high < reference - margin or ours.low > reference + margin,
        ),
    }[sign]
    if borne_out:
        return "direction only", "a claim in words"
    return ("deviates", "a claim in words") if contradicted else ("cannot tell", "our interval is on both sides")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
