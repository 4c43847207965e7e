"""Grades: how far attention goes, from what is sure in every specification, however many texts were asked.

(1 + Γ) / 2 is the share of word pairs in the right order, weighted by the difference of their effects: Γ = .5 is 75 of
100 pairs, .7 is 85. Attention is *strong* from .7 (the margin of `ranks`), *partly* from .5, *hardly* below. Texts come
in a keyed order, and whether a mean lies above or below an edge is asked by betting (exegete.measures.betting), so that
more texts may be asked until it is settled:

    above an edge t:  the mean is t or more, and "μ ≤ t − δ" is rejected
    below an edge t:  the mean is less than t, and "μ ≥ t + δ" is rejected

δ is .03 for Γ (a quick audit takes .05), and .05 for M and F. So *strong* is reported as what was shown: Γ > .67.

What all specifications must have is an intersection, and each is asked at the whole error: 5 % for what lies above. A
*No* has three ways, and shares 5 %: .045 for Γ, .0025 each for M and F (where heads that nobody reads were looked for,
.0025 of Γ's are theirs). What one specification is enough for is a union: each is asked at the error divided by their
number. That specifications *differ* is said without any tolerance, and needs, besides, that the same texts differ
between the two that are named. Where words are drawn, noise hides a part of their order, and Γ falls short by about
1 / draws: of one drawn family it is .37, .43, .50, .53 and .57 with 2, 4, 8, 16 and 64 draws. So a drawn specification
is the lower one only if it is lower by more than `SHORT` / draws. Which specifications count, those in which at most
half of the texts are void, is fixed at the first look.

What the first 50 texts say may be theirs alone, where texts differ much (of a model that is right for one class only, a
text's Γ is 1 or −1): less than *strong* is settled with `EARLY` texts that say something, or when no more can be asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.answers.rules import ERROR, TEXTS
from exegete.measures.betting import Bets
from exegete.report.section import Outcome, Variant

Side = Literal["above", "below", "open"]
NO_BY_RANKS, NO_BY_OTHERS = 0.045, 0.0025
TOLERANCE = 0.05  # of M and F
NEAR = 0.1  # how far the interval of a mean that is "about" an edge may reach
SHORT = 0.6  # of Γ by one draw, at most
EARLY = 75  # texts


class DecidingTest(NamedTuple):
    """A deciding test before it is judged: its values by specification, in the order in which texts were asked."""

    values: Mapping[str, Tensor]  # [seed, text]; NaN where a text says nothing
    void: Mapping[str, str]  # specifications that don't count, and why
    edges: tuple[float, ...]  # from the highest down: the first is the margin of the test
    tolerance: float = TOLERANCE
    no_error: float = NO_BY_OTHERS  # of "below" in all specifications
    least: float = -1.0  # that a value can be
    short: Mapping[str, float] = MappingProxyType({})  # how much specifications may fall short, as they are drawn


@dataclass(frozen=True)
class Graded:
    """One deciding test: what is sure of it in every specification that counts."""

    edges: tuple[float, ...]
    bets: Mapping[str, Bets]
    void: Mapping[str, str]
    tolerance: float
    no_error: float
    short: Mapping[str, float] = field(default_factory=dict)  # as of the test

    def side(self, name: str, edge: float, share: int = 1, strictly: bool = False) -> Side:
        """On which side of an edge a specification surely lies, at the error divided by a number."""
        own, tolerance = self.bets[name], 0.0 if strictly else self.tolerance
        if own.mean >= edge:
            return "above" if own.rejects_at_most(edge - tolerance, ERROR / share) else "open"
        error = self.no_error if share == 1 else ERROR / share
        return "below" if own.rejects_at_least(edge + tolerance, error) else "open"

    def sides(self, edge: float) -> set[Side]:
        """Those of all specifications that count."""
        return {self.side(name, edge) for name in self.bets} or {"open"}

    def any_below(self, edge: float) -> bool:
        """Whether one specification, whichever it is, surely lies below."""
        return any(self.side(name, edge, len(self.bets)) == "below" for name in self.bets)

    @property
    def is_settled(self) -> bool:
        """Whether every specification lies between two edges, or beyond all."""
        return bool(self.bets) and all(self._is_placed(name) for name in self.bets)

    def _is_placed(self, name: str) -> bool:
        """Going down from the highest edge: below all so far, and then above one, or below the last."""
        for edge in self.edges:
            side = self.side(name, edge)
            if side != "below":
                return side == "above"
        return True

    def differing(self, edge: float) -> tuple[str, str] | None:
        """Two specifications, one surely above an edge and one below, of which the same texts differ; or none."""
        every = len(self.bets)
        above = [name for name in self.bets if self.side(name, edge, every, strictly=True) == "above"]
        below = [name for name in self.bets if self.side(name, edge, every, strictly=True) == "below"]
        for high, low in sorted(
            product(above, below), key=lambda pair: self.bets[pair[1]].mean - self.bets[pair[0]].mean
        ):
            if self._apart(high, low):
                return high, low
        return None

    def _apart(self, high: str, low: str) -> bool:
        """Whether the same texts have higher values in one than in the other, by more than its draws explain."""
        both = self.bets[high].at_texts - self.bets[low].at_texts
        return Bets(both, -2.0, 2.0).rejects_at_most(self.short.get(low, 0.0), ERROR)

    @property
    def outcome(self) -> Outcome:
        """As a line of the scorecard, by the margin."""
        sides = self.sides(self.edges[0])
        if sides == {"above"}:
            return "holds"
        if sides == {"below"}:
            return "fails"
        return "hangs on" if self.differing(self.edges[0]) else "cannot tell"

    @property
    def means(self) -> list[float]:
        """Of all specifications that count."""
        return [own.mean for own in self.bets.values()]

    @property
    def texts(self) -> int:
        """The least number that a specification rests on."""
        return min((len(own.values) for own in self.bets.values()), default=0)

    def variants(self, names: Sequence[str]) -> tuple[Variant, ...]:
        """Every specification with its confidence sequence, also those that don't count."""
        return tuple(self._variant(name) for name in names)

    def _variant(self, name: str) -> Variant:
        if name in self.void:
            return Variant(name, verdict="cannot tell", void=self.void[name])
        mean, low, high, n, _ = self.bets[name].interval(ERROR)
        outcomes: dict[Side, Outcome] = {"above": "holds", "below": "fails", "open": "cannot tell"}
        return Variant(name, _finite(mean), _finite(low), _finite(high), n, outcomes[self.side(name, self.edges[0])])


def grade_test(test: DecidingTest) -> Graded:
    """A test with its bets; several trainings by the mean of every text: what is said is about these."""
    bets = {
        name: Bets(torch.nanmean(values, 0), test.least)
        for name, values in test.values.items()
        if name not in test.void
    }
    few = {name: f"{len(own.values)} texts say something, and a verdict needs {TEXTS}" for name, own in bets.items()
           if len(own.values) < TEXTS}  # fmt: skip
    counted = {name: own for name, own in bets.items() if name not in few}
    return Graded(test.edges, counted, {**test.void, **few}, test.tolerance, test.no_error, test.short)


@dataclass(frozen=True)
class Grading:
    """What the three tests that decide say together."""

    reads: Graded
    ranks: Graded
    carries: Graded

    @property
    def tests(self) -> tuple[Graded, Graded, Graded]:
        """All three."""
        return self.reads, self.ranks, self.carries

    @property
    def is_settled(self) -> bool:
        """Whether more texts would change nothing that is said of grades."""
        if self.unread or self.flat:
            return True
        strong = self.ranks.sides(self.ranks.edges[0]) == {"above"}
        enough = strong or max((len(own.values) for own in self.ranks.bets.values()), default=0) >= EARLY
        return enough and (self.hardly or all(each.is_settled for each in self.tests))

    @property
    def unread(self) -> bool:
        """Whether words do not act through their weights, in any specification."""
        return self.reads.sides(self.reads.edges[0]) == {"below"}

    @property
    def flat(self) -> bool:
        """Whether differences of weights do not count, in any specification."""
        return self.carries.sides(self.carries.edges[0]) == {"below"}

    @property
    def hardly(self) -> bool:
        """Whether weights hardly order words, in any specification."""
        return self.ranks.sides(self.ranks.edges[-1]) == {"below"}

    @property
    def is_read(self) -> bool:
        """Whether words act through their weights, and through the differences of these, in all specifications."""
        return all(each.sides(each.edges[0]) == {"above"} for each in (self.reads, self.carries))


def grade(grading: Grading) -> str:
    """The key of the answer: the most that is known, by the table in `exegete.answers.decision`."""
    ranks = grading.ranks
    strong, partly = ranks.edges
    sides = {edge: ranks.sides(edge) for edge in ranks.edges}
    if grading.unread or grading.flat or grading.hardly:
        return "no"
    if grading.is_read and sides[strong] == {"above"}:
        return "yes"
    at_most_partly = sides[strong] == {"below"} or ranks.any_below(strong)
    if grading.is_read and (differing := [edge for edge in ranks.edges if ranks.differing(edge)]):
        return _range(differing, strong, sides[partly] == {"above"})
    if grading.is_read and sides[partly] == {"above"}:
        return "partly" if at_most_partly else "about strong" if _about(ranks, strong) else "at least partly"
    if at_most_partly:
        return "about partly" if grading.is_read and _about(ranks, partly) else "at most partly"
    return "undecided"


def _range(differing: Sequence[float], strong: float, at_least_partly: bool) -> str:
    """From which grade to which specifications reach, where two of them surely lie on both sides of an edge."""
    if len(differing) > 1:
        return "hardly to strongly"
    if differing == [strong]:
        return "partly to strongly" if at_least_partly else "at most partly"
    return "hardly to partly"


def _about(test: Graded, edge: float) -> bool:
    """Whether the specification with the least mean, as far as it is known, lies near an edge."""
    least = min(test.bets.values(), key=lambda own: own.mean)
    _, low, high, *_ = least.interval(ERROR)
    return edge - NEAR <= low and high <= edge + NEAR


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
