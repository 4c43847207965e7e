"""Length filter: which texts are too short or too long, and the one of Jain & Wallace with its quirk."""

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True)
class LengthFilter:
    """Keep the examples of one split that have `minimum` to `maximum` words, both included.

    `legacy` is the filter of Jain & Wallace's code: strict inequalities, and a bound that is not given is the extreme
    observed in that split. So the shortest and the longest texts of every split go, whether anyone asked for it or not.
    """

    minimum: int | None = None
    maximum: int | None = None
    legacy: bool = False

    def __call__(self, examples: Sequence[T]) -> tuple[list[T], int]:
        """The examples that stay, in order, and how many were dropped."""
        lengths = [len(e) for e in examples]
        low, high = self.bounds(lengths)
        kept = [e for e, length in zip(examples, lengths, strict=True) if low <= length <= high]
        return kept, len(examples) - len(kept)

    def bounds(self, lengths: Iterable[int]) -> tuple[float, float]:
        """The smallest and the largest length that stays."""
        if not self.legacy:
            return self.minimum or 0, float("inf") if self.maximum is None else self.maximum
        every = list(lengths)
        shortest, longest = min(every, default=0), max(every, default=0)
        low = shortest if self.minimum is None else self.minimum
        high = longest if self.maximum is None else self.maximum
        return low + 1, high - 1
