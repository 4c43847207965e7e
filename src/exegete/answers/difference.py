"""Difference: two texts, explained alike: which words have they in common, and what did these gain or lose?

Both explanations are of one class. Words are matched in their order, by the longest stretches that the texts share
(Ratcliff & Metzener 1988). For a word in common and a method with scores s and s' in the two texts, the difference is
s' − s: in the method's own unit, so that rows of different methods are not compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import polars as pl

from exegete.answers.explanation import Explanation, Unit, class_said
from exegete.base.errors import UsageError
from exegete.report.heatmap import Beside, HeatMap, HeatRow

WordPair = tuple[int | None, int | None]


def match_words(first: Sequence[str], second: Sequence[str]) -> list[WordPair]:
    """Places of words that are the same in both; a word without a partner has none, and comes where it stands.

    >>> match_words("a dull film".split(), "a fine film".split())
    [(0, 0), (1, None), (None, 1), (2, 2)]
    """
    found: list[WordPair] = []
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind == "equal":
            found += zip(range(a, b), range(c, d), strict=True)
        else:
            found += [*((place, None) for place in range(a, b)), *((None, place) for place in range(c, d))]
    return found


@dataclass(frozen=True)
class Difference:
    """What a second text changes."""

    first: Explanation
    second: Explanation
    by: Unit = "word"

    def __post_init__(self) -> None:
        one, other = ((e.target, e.contrast, e.of, e.model) for e in (self.first, self.second))
        if one != other:
            raise UsageError(
                f"two texts are compared by one model and for one class: explain the second with "
                f"target='{self.first.target}', and with the contrast and `of` of the first"
            )

    @cached_property
    def maps(self) -> tuple[HeatMap, HeatMap]:
        """Both texts with the scores of their words, or of what else is asked for."""
        return self.first.heatmap(self.by), self.second.heatmap(self.by)

    @cached_property
    def pairs(self) -> list[WordPair]:
        """Words of the two texts, matched."""
        return match_words(*(drawn.words for drawn in self.maps))

    @property
    def common(self) -> list[tuple[int, int]]:
        """Places of the words that both have."""
        return [(one, other) for one, other in self.pairs if one is not None and other is not None]

    @property
    def rows(self) -> dict[str, tuple[HeatRow, HeatRow]]:
        """By method, in the order of the first text; those that both were explained with."""
        theirs = {m.name: row for m, row in zip(self.second.methods, self.maps[1].rows, strict=True)}
        mine = zip(self.first.methods, self.maps[0].rows, strict=True)
        return {m.name: (row, theirs[m.name]) for m, row in mine if m.name in theirs}

    @property
    def frame(self) -> pl.DataFrame:
        """One row per method and word in common."""
        return pl.DataFrame(
            [
                {
                    "method": name,
                    "word": self.maps[0].words[i],
                    "position": i,
                    "second_position": j,
                    "score": one.values[i],
                    "second_score": other.values[j],
                    "difference": other.values[j] - one.values[i],
                }
                for name, (one, other) in self.rows.items()
                for i, j in self.common
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """For machines: both explanations, how their words match, and differences by method."""
        words = tuple(drawn.words for drawn in self.maps)
        return {
            "first": self.first.to_json(self.by),
            "second": self.second.to_json(self.by),
            "words": [
                {"word": words[0][i] if i is not None else words[1][j or 0], "first": i, "second": j}
                for i, j in self.pairs
            ],
            "differences": {
                name: [other.values[j] - one.values[i] for i, j in self.common]
                for name, (one, other) in self.rows.items()
            },
        }

    def drawn(self) -> Beside:
        """Both texts side by side, and what the words in common gained or lost."""
        one, other = self.maps
        left, right = {i for i, _ in self.common}, {j for _, j in self.common}
        return Beside(
            title=self._title(),
            words=(one.words, other.words, tuple(one.words[i] for i, _ in self.common)),
            changed=(frozenset(range(len(one.words))) - left, frozenset(range(len(other.words))) - right),
            rows=tuple(self._row(*rows) for rows in self.rows.values()),
            toward=one.toward,
            unit=self.by,
            notes=(*(f"first text: {note}" for note in one.notes), *(f"second text: {note}" for note in other.notes)),
        )

    def html(self, styled: bool = True) -> Any:
        """Both texts and their differences as one block of HTML."""
        from exegete.report.markup import two_texts_block

        return two_texts_block(self.drawn(), styled)

    def _repr_html_(self) -> str:
        return str(self.html())

    def _title(self) -> str:
        both = (self.first, self.second)
        said = [f"{class_said(e.prediction)} ({e.probabilities.get(e.prediction, 0.0):.3f})" for e in both]
        shared = f"{len(self.common)} {self.by}s in common, of {len(self.maps[0].words)} and {len(self.maps[1].words)}"
        return (
            f"Predicted: {said[0]}, then {said[1]}. Explained: the {self.first.of} of {self.maps[0].toward}. {shared}."
        )

    def _row(self, one: HeatRow, other: HeatRow) -> tuple[HeatRow, HeatRow, HeatRow]:
        """Two rows in shades of one scale, and their difference in shades of its own."""
        most = max(one.largest, other.largest)
        apart = tuple(other.values[j] - one.values[i] for i, j in self.common)
        return (
            HeatRow(one.name, one.values, one.signed, main=one.main, most=most),
            HeatRow(other.name, other.values, other.signed, most=most),
            HeatRow(one.name, apart, signed=True),
        )
