"""Reader: what spells the words of a text as rows of a batch, and rows as words again.

Rows are numbers that mean nothing by themselves: row 17 is another word for another model. So a batch knows its reader,
and a model that is given rows of somebody else's refuses them.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from torch import Tensor

Gone = Literal["zero", "unknown"]  # how a word can be gone and still have its place


class Reader(Protocol):
    """A vocabulary, or whatever else a model reads words with; readers that spell alike are equal."""

    @property
    def fingerprint(self) -> str:
        """Of all that decides how words are spelled."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it knows, in the order of their rows; none where any word can be spelled."""

    def rows(self, words: Sequence[str]) -> list[int]:
        """The row of every word."""

    def spelled(self, rows: Iterable[int]) -> tuple[str, ...]:
        """The word of every row."""

    def knows(self, word: str) -> bool:
        """Whether a word is one of its own, and not the unknown word."""

    def cost(self, rows: Tensor) -> Tensor:
        """What reading every row takes: 1 where words are read as they are, else its number of pieces."""

    def costs(self, tokens: Tensor, part: Tensor) -> Tensor:
        """What reading every row of whole texts takes, [batch, token], where neighbours may decide on pieces, too.

        `part` says which text of its example a token is of, -1 where none is.
        """

    def plain(self, rows: Tensor) -> Tensor:
        """The rows of the words alone, where the characters between words are read, too."""

    def without(self, rows: Tensor, by: Gone) -> Tensor:
        """What stands for words that are zeroed or unknown: equal numbers where a model can't tell them apart.

        A word that is gone keeps its width: where words have several pieces, those of other numbers of pieces differ.
        """
