"""Heat map: the words of a text, shaded by their scores, one row per method, so that methods are read side by side.

A signed score has two hues (for and against the class), an unsigned one a third (how much, either way). Shade says how
large a score is beside the largest of its own row: rows share a scale of ranks, not of numbers. Marks say the same
without colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

LEVELS = 4  # shades; level 0 has none
FOR, AGAINST, SIZE = "for", "against", "size"
MARKS = {FOR: "+", AGAINST: "−", SIZE: "*"}


@dataclass(frozen=True)
class HeatRow:
    """One method's scores, and the numbers that stand beside them."""

    name: str
    values: tuple[float, ...]
    signed: bool
    numbers: tuple[str, ...] = ()  # as a reader sees them, one for each of the map's columns
    complaint: str = ""
    main: bool = False  # the row that the others are held against
    most: float = 0.0  # what the strongest shade stands for, where it is not the row's largest score

    @property
    def largest(self) -> float:
        """The size of the largest score, or of what the strongest shade stands for."""
        return self.most or max(map(abs, self.values), default=0.0)

    def intensity(self, place: int) -> float:
        """The size of one score, as a share of the largest."""
        return abs(self.values[place]) / self.largest if self.largest > 0 else 0.0

    def level(self, place: int) -> int:
        """Fifths of the largest score: 0 for the lowest fifth, 4 for the highest.

        >>> [HeatRow("m", (0.1, -0.5, 1.0), signed=True).level(place) for place in range(3)]
        [0, 2, 4]
        """
        return min(LEVELS, int(self.intensity(place) * (LEVELS + 1)))

    def hue(self, place: int) -> str:
        """Whether a word speaks for or against the class, where the method says so."""
        if not self.signed:
            return SIZE
        return FOR if self.values[place] >= 0 else AGAINST

    def marks(self, place: int) -> str:
        """The shade in characters.

        >>> [HeatRow("m", (0.1, -0.5, 1.0), signed=True).marks(place) for place in range(3)]
        ['', '−−', '++++']
        """
        return MARKS[self.hue(place)] * self.level(place)

    def top(self, most: int) -> list[int]:
        """The places of the highest scores by size, highest first; equal ones in the order of the text."""
        return sorted(range(len(self.values)), key=lambda place: -abs(self.values[place]))[:most]


@dataclass(frozen=True)
class Matrix:
    """How far every pair of methods agrees."""

    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # None where it is undefined
    caption: str


@dataclass(frozen=True)
class HeatMap:
    """A text with its rows, and what is said around them."""

    title: str  # what was predicted, and what is explained
    words: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    toward: str  # the class that the scores speak for
    columns: tuple[str, ...] = ()  # titles of the rows' numbers
    unknown: frozenset[int] = frozenset()  # places of words that the model doesn't know
    notes: tuple[str, ...] = ()
    question: str = ""
    reading: tuple[str, ...] = ()  # its answer: paragraphs, the conclusion first
    small_print: tuple[str, ...] = ()  # what the numbers are
    matrix: Matrix | None = None
    unit: str = "word"
    changed: frozenset[int] = frozenset()  # places of words that another text, beside this one, doesn't have

    @property
    def legend(self) -> dict[str, str]:
        """What the hues stand for, of those that occur."""
        meanings = {
            FOR: f"for {self.toward}",
            AGAINST: f"against {self.toward}",
            SIZE: "matters either way",
        }
        signs = {row.signed for row in self.rows}
        return {hue: said for hue, said in meanings.items() if (hue != SIZE) in signs}


@dataclass(frozen=True)
class Beside:
    """Two texts with the same rows, and for the words that both have, the second's scores minus the first's."""

    title: str
    words: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # of the first, of the second, of both
    changed: tuple[frozenset[int], frozenset[int]]  # places of words that only one has
    rows: tuple[tuple[HeatRow, HeatRow, HeatRow], ...]
    toward: str  # the class that the scores speak for
    unit: str = "word"
    notes: tuple[str, ...] = ()

    @property
    def maps(self) -> tuple[HeatMap, HeatMap, HeatMap]:
        """The three as heat maps: first, second, difference."""
        marked = (*self.changed, frozenset[int]())
        one, other, apart = (
            HeatMap(self.title, words, tuple(row[place] for row in self.rows), self.toward, changed=marked[place])
            for place, words in enumerate(self.words)
        )
        return one, other, apart


def lines_of(widths: Sequence[int], width: int) -> list[range]:
    """Words of the given widths in lines of at most `width`, a space between two; a longer word has its own line.

    >>> lines_of([3, 4, 2], 8)
    [range(0, 2), range(2, 3)]
    """
    starts, used = [0], 0
    for place, wide in enumerate(widths):
        if place > starts[-1] and used + 1 + wide > width:
            starts.append(place)
            used = 0
        used += wide + (1 if place > starts[-1] else 0)
    ends = [*starts[1:], len(widths)]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def extracts(tops: Sequence[int], n: int, around: int) -> list[range]:
    """Stretches of a text of n words that show the given places with their neighbours; those that touch are one.

    >>> extracts([2, 4, 30], 40, 2)
    [range(0, 7), range(28, 33)]
    """
    found: list[range] = []
    for place in sorted(tops):
        start, end = max(0, place - around), min(n, place + around + 1)
        if found and start <= found[-1].stop:
            found[-1] = range(found[-1].start, end)
        else:
            found.append(range(start, end))
    return found
