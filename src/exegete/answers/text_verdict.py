"""Verdict on a text: may attention be read as the explanation of one prediction? What one text can tell, and no more.

Two signs. Does attention rank the words as the signed methods do, about as well as these agree with each other
(non-inferiority)? And does the decision hang on its first words: how many must be deleted, in its order,
before another class wins, beside the best other method and random orders?
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from torch import Tensor

from exegete.answers.comparison import NEVER, ORDERS, Removals, taus
from exegete.measures.faithfulness import EXACT

ATTENTION, NOISE = "attention", "random"
FEWEST = 5  # words below which nothing is said
MARGIN = 0.1  # of τ-b, as in the audit's criteria; and of the words that may go later than by the best method

_CONCLUSIONS: dict[tuple[bool | None, bool | None], str] = {
    (
        True,
        True,
    ): "Nothing in this text speaks against reading attention: it ranks the words about as the other methods "
    "do, and the decision hangs on the words that it ranks first.",
    (False, False): "Attention should not be read as the explanation of this prediction: it ranks the words otherwise "
    "than the other methods, and deleting what it ranks first changes the decision no sooner than deleting at random.",
    (True, False): "The signs disagree: attention ranks the words about as the other methods do, but deleting what it "
    "ranks first changes the decision no sooner than deleting at random. Read it only beside another method.",
    (False, True): "The signs disagree: the decision hangs on the words that attention ranks first, but it ranks the "
    "words otherwise than the other methods. Its first words may be read, its ranking may not.",
    (
        True,
        None,
    ): "Attention ranks the words about as the other methods do; whether the decision hangs on the words that "
    "it ranks first, this text can't tell.",
    (False, None): "Attention ranks the words otherwise than the other methods: read it only beside another method. "
    "Whether the decision hangs on the words that it ranks first, this text can't tell.",
    (None, True): "The decision hangs on the words that attention ranks first; whether it ranks the words as other "
    "methods do, can't be told here.",
    (
        None,
        False,
    ): "Deleting what attention ranks first changes the decision no sooner than deleting at random: read it "
    "only beside another method.",
    (None, None): "This text can't tell whether attention may be read.",
}


@dataclass(frozen=True)
class TextVerdict:
    """What this text says on reading attention, with the numbers that it follows from."""

    n: int  # words
    others: tuple[str, ...]  # signed methods that are no relatives of attention
    with_others: float | None  # mean τ-b of attention with the sizes of their scores
    among_others: float | None  # their mean τ-b with each other
    flip: int | None  # words deleted in the order of attention when the decision changes; None: never
    best: str | None  # the method whose order changes it first
    best_flip: int | None
    random_flip: float | None  # the median over random orders
    decided: bool  # the explained class is the predicted one: else deleting what speaks for it changes no decision

    @property
    def noise(self) -> float:
        """The standard deviation of τ of a ranking that knows nothing: √(2(2n+5) / 9n(n−1)) (Kendall 1970)."""
        return math.sqrt(2 * (2 * self.n + 5) / (9 * self.n * (self.n - 1))) if self.n > 1 else math.inf

    @property
    def agrees(self) -> bool | None:
        """Whether attention agrees with the others nearly as well as they agree with each other.

        Yes: at most the margin below. No: below it by more than τ varies by chance in a text so short.
        """
        if self.n < FEWEST or self.with_others is None or self.among_others is None:
            return None
        short = self.among_others - MARGIN - self.with_others
        return True if short <= 0 else False if short > self.noise else None

    @property
    def carries(self) -> bool | None:
        """Whether the decision hangs on attention's first words.

        Yes: it changes sooner than in random order, and about as soon as by the best method. No: not sooner than in
        random order. In between, where neither of the two changes it, or only when more than half of the words are
        gone, this can't be told.
        """
        ours, best, chance = map(_or_never, (self.flip, self.best_flip, self.random_flip))
        if self.n < FEWEST or not self.decided or min(ours, best, chance) == NEVER:
            return None
        if ours == chance == NEVER:
            return None
        if ours >= chance:
            return False
        if ours > self.n / 2:  # what is left then is hardly the text
            return None
        return True if ours <= best + max(1, MARGIN * self.n) else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The conclusion, then what it rests on."""
        if self.n < FEWEST:
            many = f"{self.n} word{'s' if self.n > 1 else ''}"
            return (f"A text of {many} is too short to tell whether attention may be read.",)
        rests_on = filter(None, (self._on_agreement(), self._on_removal()))
        return (
            _CONCLUSIONS[self.agrees, self.carries],
            *rests_on,
            f"One text of {self.n} words is an indication only.",
        )

    def _on_agreement(self) -> str:
        if not self.others:
            return ""
        if self.with_others is None:
            return "Attention's ranking can't be compared: all of its weights, or all scores of the others, are equal."
        among = "" if self.among_others is None else f", these have {two_places(self.among_others)} with each other"
        many = f"{len(self.others)} signed methods" if len(self.others) > 1 else self.others[0]
        chance = f"; unrelated rankings of {self.n} words have 0 ± {two_places(self.noise)}"
        ours = f"{two_places(self.with_others)} with {many}"
        return f"By size, attention's scores have a mean τ-b of {ours}{among}{chance}."

    def _on_removal(self) -> str:
        if not self.decided:
            return "The explained class is not the predicted one, so deleting what speaks for it settles nothing."
        found = [
            ("attention", self.flip),
            (self.best, self.best_flip),
            (f"random ({ORDERS} orders, median)", self.random_flip),
        ]
        if all(k is None for _, k in found):
            return "The decision doesn't change with words deleted in the order of any method, down to the last word."
        said = ", ".join(f"{name} {_after(k)}" for name, k in found if name)
        steps = "" if self.n <= EXACT else ", asked after every twentieth of them"
        return f"Words deleted before the decision changes, of {self.n}{steps}: {said}."


def read_verdict(
    values: Mapping[str, Tensor], signed: Mapping[str, bool], gone: Removals, decided: bool
) -> TextVerdict | None:
    """The numbers for one text, from [word] scores by method; None if attention was not asked for."""
    attention = next((name for name in values if name.partition(":")[0] == ATTENTION), None)
    if attention is None:
        return None
    others = tuple(name for name in values if signed[name] and not name.startswith(ATTENTION))
    sizes = {name: values[name].abs() for name in (attention, *others)}
    rivals = [name for name in values if not name.startswith((ATTENTION, NOISE))]
    best = min(rivals, key=lambda name: _or_never(gone.flip[name]), default=None)
    return TextVerdict(
        n=len(values[attention]),
        others=others,
        with_others=_mean(taus([(sizes[attention], sizes[name]) for name in others])),
        among_others=_mean(taus([(sizes[a], sizes[b]) for a, b in combinations(others, 2)])),
        flip=gone.flip[attention],
        best=best,
        best_flip=None if best is None else gone.flip[best],
        random_flip=gone.random,
        decided=decided,
    )


def _or_never(k: float | None) -> float:
    return NEVER if k is None else float(k)


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are defined."""
    defined = [value for value in values if value is not None]
    return mean(defined) if defined else None


def two_places(value: float) -> str:
    """Two places, with a real minus sign."""
    return f"{value + 0.0:.2f}".replace("-", "−")


def _after(k: float | None) -> str:
    return "never" if k is None else f"{k:g}"
