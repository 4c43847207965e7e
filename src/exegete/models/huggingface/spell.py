"""Spell: words to a tokenizer's pieces, as it would cut the running text.

A tokenizer cuts a text; here words are cut one by one, so that a word keeps its pieces whatever stands beside it. Most
tokenizers never cut across white space, and it is the same. Byte-level ones (GPT-2, RoBERTa) write the space before a
word into its first piece: there a word is spelled with its space, and the first word of a text without. Which way is
right is found by cutting a few texts both ways, and `exact` says whether one of them was.

What the tokenizer puts around a text and between two (CLS, SEP, BOS) is found in the same way, not guessed: these are
the start and end symbols of a batch.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from exegete.models.spelling import Grid, spelled
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example
from exegete.tasks.open_words import FIRST, OpenWords, unseen
from exegete.tasks.vocabulary import END, PAD, START, UNKNOWN

if TYPE_CHECKING:
    from exegete.tasks.reader import Gone

PROBES = (
    "a charming film , unbelievably well-acted",
    "The Quick brown fox isn't 3.50 dollars (naïve, über-long)!",
    "I watched it twice . Why ?",
)
VARIANTS = 4  # of a row: by which text it is of, and whether a word is its first
WIDEST = 1 << 12  # pieces that a word may have, to tell apart how two ways of spelling it count


class Wrappers(NamedTuple):
    """What stands around a text, and around and between two."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    between: tuple[int, ...]  # of two texts
    last: tuple[int, ...]  # after the second


@dataclass(frozen=True, eq=False)
class WordPieces(OpenWords):
    """Any word, by the pieces of a tokenizer (`tokenizers.Tokenizer`)."""

    tokenizer: Any = field(default=None, repr=False)
    unknown: int = 0  # the piece that stands for a word made unknown: the mask, or else the unknown piece
    unknown_piece: int | None = None  # what the tokenizer writes where it has no piece

    def rows(self, words: Sequence[str]) -> list[int]:
        """Every word has a row by its letters, also one that is written as a start symbol is."""
        return [unseen(word) for word in words]

    @cached_property
    def fingerprint(self) -> str:
        """Of the tokenizer and the way words are spelled with it."""
        parts = (self.tokenizer.to_str(), self.spaced, self.wrappers, self.unknown)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @cached_property
    def wrappers(self) -> Wrappers:
        """As found around and between probes."""
        (start, end), (_, between, last) = self._around("a"), self._around("a", "b")
        return Wrappers(start, end, between, last)

    def _around(self, *texts: str) -> list[tuple[int, ...]]:
        """The symbols before, between and after texts."""
        found = self.tokenizer.encode(*texts)
        around: list[tuple[int, ...]] = [()] * (len(texts) + 1)
        part = 0
        for piece, text in zip(found.ids, found.sequence_ids, strict=True):
            if text is None:
                around[part] = (*around[part], piece)
            else:
                part = text + 1
        return around

    @cached_property
    def spaced(self) -> bool:
        """Whether words after the first are spelled with the space before them: what cuts more probes as a whole."""
        plain, with_space = (self._agreeing(spaced) for spaced in (False, True))
        return with_space > plain

    @cached_property
    def exact(self) -> bool:
        """Whether probes are spelled word by word as the tokenizer cuts them whole."""
        return self._agreeing(self.spaced) == len(PROBES)

    def _agreeing(self, spaced: bool) -> int:
        return sum(self._word_by_word(text, spaced) == self._cut([text])[0] for text in PROBES)

    def _word_by_word(self, text: str, spaced: bool) -> list[int]:
        first, *others = text.split()
        written = [first, *(f" {word}" if spaced else word for word in others)]
        return list(chain.from_iterable(self._cut(written)))

    def _cut(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def pieces(self, row: int, first: bool) -> tuple[int, ...]:
        """Of a word; the first of its text may be spelled otherwise."""
        if row < FIRST:
            return (self.unknown,) if row == UNKNOWN else ()
        (word,) = self.spelled((row,))
        written = f" {word}" if self.spaced and not first else word
        if written not in self._spelt:
            self._spelt[written] = tuple(self._cut([written])[0])
        return self._spelt[written]

    @cached_property
    def _spelt(self) -> dict[str, tuple[int, ...]]:
        return {}

    def knows(self, word: str) -> bool:
        """Whether any of it is spelled; a word of Chinese may have one character that is not."""
        return any(piece != self.unknown_piece for piece in self.pieces(unseen(word), False))

    def grid(self, batch: Batch) -> Grid:
        """The pieces of a batch: words by their place in their text, symbols by which text they are of."""
        tokens, words = batch.tokens, batch.present & (batch.tokens >= FIRST)
        of_second = (batch.part == 1) & batch.present
        firsts = torch.zeros_like(words)
        for of_text in (batch.part == 0, of_second):
            inside = words & of_text
            firsts |= inside & (inside.cumsum(-1) == 1)
        paired = of_second.any(-1, keepdim=True)
        symbol = torch.where(of_second, 2, paired.long())  # 0: the only text; 1, 2: the first and second of two
        variant = torch.where(words, firsts.long(), symbol)
        return spelled(batch._replace(tokens=tokens * VARIANTS + variant), self._variant)

    def _variant(self, code: int) -> tuple[int, ...]:
        row, variant = divmod(code, VARIANTS)
        if row == START:
            return () if variant == 2 else self.wrappers.start
        if row == END:
            return (self.wrappers.end, self.wrappers.between, self.wrappers.last)[variant]
        return self.pieces(row, first=bool(variant) and row != PAD)

    def length(self, example: Example) -> int:
        """Pieces of an example, with all symbols."""
        start, end, between, last = map(len, self.wrappers)
        around = start + (end if len(example.texts) == 1 else between + last)
        words = (self.pieces(unseen(word), place == 0) for text in example.texts for place, word in enumerate(text))
        return around + sum(map(len, words))

    def cost(self, rows: Tensor) -> Tensor:
        """Pieces of every row: of a word that is not the first, of a symbol around a single text."""
        some, at = rows.unique(return_inverse=True)
        return torch.tensor([len(self._variant(row * VARIANTS)) for row in some.tolist()], device=rows.device)[at]

    def without(self, rows: Tensor, by: "Gone") -> Tensor:
        """Words of as many pieces, wherever they stand, look alike once they are zeroed or all pieces are the mask."""
        some, at = rows.unique(return_inverse=True)
        both = [[len(self._variant(row * VARIANTS + first)) for first in (0, 1)] for row in some.tolist()]
        number = torch.tensor([inner * WIDEST + first for inner, first in both], device=rows.device)[at]
        return (-2 * number - int(by == "unknown")).to(rows.dtype)


def reader_of(tokenizer: Any) -> WordPieces:
    """Of a fast tokenizer of transformers: its rules as they are now, without truncation and padding."""
    import tokenizers

    own = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    unknown_piece = tokenizer.unk_token_id
    given = (tokenizer.mask_token_id, unknown_piece, tokenizer.eos_token_id)
    unknown = next((piece for piece in given if piece is not None), 0)
    return WordPieces((), True, own, unknown, unknown_piece)
