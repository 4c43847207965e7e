"""Word pieces: texts to a tokenizer's pieces, cut whole as written, every piece given to the word it begins in.

A tokenizer cuts a text, and what stands between its words is part of it: a line break or a second space is a piece of
its own to many. So a row of a batch is a word with the characters before it, where these are more or less than one
space (`Example.verbatim`); the rows of a text, one after the other, are the text, and that is what is cut. A word that
is deleted takes the characters before it along, and what is left is cut anew. A piece belongs to the word in which it
begins, white space to the word after it, at the end of a text to the last one.

What the tokenizer puts around a text and between two (CLS, SEP, BOS) is found by cutting probes, not guessed: these are
the start and end symbols of a batch.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from exegete.models.spelling import Grid
from exegete.tasks.batching import Batch
from exegete.tasks.example import MARK, Example
from exegete.tasks.open_words import FIRST, OpenWords, unseen, word_of
from exegete.tasks.vocabulary import END, START, UNKNOWN

if TYPE_CHECKING:
    from exegete.tasks.reader import Gone

PROBES = (
    "a charming film , unbelievably well-acted",
    "The Quick brown fox isn't 3.50 dollars (naïve, über-long)!",
    "I watched it twice . Why ?",
)
REMEMBERED = 1 << 12  # texts whose pieces are kept: a pass asks for them more than once


class Wrappers(NamedTuple):
    """What stands around a text, and around and between two."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    between: tuple[int, ...]  # of two texts
    last: tuple[int, ...]  # after the second


@dataclass(frozen=True, eq=False)
class WordPieces(OpenWords):
    """Any text, by the pieces of a tokenizer (`tokenizers.Tokenizer`)."""

    verbatim: ClassVar[bool] = True

    tokenizer: Any = field(default=None, repr=False)
    unknown: int = 0  # the piece that stands for a word made unknown: the mask, or else the unknown piece
    unknown_piece: int | None = None  # what the tokenizer writes where it has no piece
    limit: int | None = None  # pieces of an example, symbols included, beyond which it is cut; None: it never is

    def rows(self, words: Sequence[str]) -> list[int]:
        """Every word has a row by its letters, also one that is written as a start symbol is."""
        return [unseen(word) for word in words]

    @cached_property
    def fingerprint(self) -> str:
        """Of the tokenizer and the way words are spelled with it."""
        parts = (self.tokenizer.to_str(), self.wrappers, self.unknown, self.limit)
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
    def crossing(self) -> bool:
        """Whether pieces of probes begin in one word and end in another."""
        return any(self._crosses(text) for text in PROBES)

    def _crosses(self, text: str) -> bool:
        ends = list(accumulate(map(len, running([unseen(word) for word in text.split()], True))))
        spans = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return any(bisect_right(ends, start) < bisect_left(ends, end) for start, end in spans if end > start)

    def spelled(self, rows: Iterable[int]) -> tuple[str, ...]:
        """The words that rows stand for, without the characters around them."""
        return tuple(word.strip() for word in super().spelled(rows))

    def plain(self, rows: Tensor) -> Tensor:
        """The rows of the words alone."""
        some, at = rows.unique(return_inverse=True)
        alone = [row if row < FIRST else unseen(*self.spelled((row,))) for row in some.tolist()]
        return torch.tensor(alone, dtype=rows.dtype, device=rows.device)[at]

    def knows(self, word: str) -> bool:
        """Whether any of it is spelled; a word of Chinese may have one character that is not."""
        return any(piece != self.unknown_piece for piece in self._cut((unseen(word),), first=False).ids)

    def grid(self, batch: Batch) -> Grid:
        """The pieces of every word of a batch, of symbols by which text they are of."""
        return self._grid(batch.tokens, batch.part.where(batch.present, -1))

    def _grid(self, tokens: Tensor, part: Tensor) -> Grid:
        texts = list(map(self._example, map(tuple, tokens.tolist()), map(tuple, part.tolist())))
        counts = torch.tensor([len(text.ids) for text in texts])
        row = torch.arange(len(texts)).repeat_interleave(counts)
        place, within, ids = (
            torch.tensor(list(chain.from_iterable(column)), dtype=torch.int64) for column in zip(*texts, strict=True)
        )
        shape = (*tokens.shape, int(within.max()) + 1 if len(within) else 1)
        grid = Grid(torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.bool))
        grid.ids[row, place, within], grid.there[row, place, within] = ids, True
        return Grid(grid.ids.to(tokens.device), grid.there.to(tokens.device))

    @cached_property
    def _example(self) -> Callable[[tuple[int, ...], tuple[int, ...]], "PlacedPieces"]:
        return lru_cache(REMEMBERED)(self._pieces_of_example)

    def _pieces_of_example(self, tokens: tuple[int, ...], part: tuple[int, ...]) -> "PlacedPieces":
        """The pieces of a row of a batch: its texts, the symbols around them, and what stands for an unknown word."""
        there = [
            (of, kind_of_row(row), place, row)
            for place, (row, of) in enumerate(zip(tokens, part, strict=True))
            if of >= 0
        ]
        last, begun = max(part, default=-1), set[int]()
        pieces: list[tuple[int, int, int]] = []  # place, within, id
        texts: list[int] = []  # which text each is of, -1 where it is a symbol's
        for (of, kind), run in groupby(there, key=itemgetter(0, 1)):
            _, _, places, rows = zip(*run, strict=True)
            if kind == FIRST:
                words = self._cut(rows, first=of not in begun)
                pieces += [(places[word], within, piece) for word, within, piece in zip(*words, strict=True)]
                begun.add(of)
            else:
                own = [self._symbol(row, of, last) for row in rows]
                pieces += [(places[i], n, piece) for i, each in enumerate(own) for n, piece in enumerate(each)]
            texts += [of if kind in (FIRST, UNKNOWN) else -1] * (len(pieces) - len(texts))
        if self.limit is not None and len(pieces) > self.limit:
            pieces = shortened(pieces, texts, self.limit)
        return PlacedPieces(*zip(*pieces, strict=True)) if pieces else NOTHING

    def _symbol(self, row: int, of: int, last: int) -> tuple[int, ...]:
        """What stands for a row that is no word; `of` is its text, and `last` the number of the last text."""
        start, end, between, second = self.wrappers
        if row == START:
            return start if of == 0 else ()
        if row == END:
            return end if last == 0 else between if of == 0 else second
        return (self.unknown,) if row == UNKNOWN else ()

    def _cut(self, rows: Sequence[int], first: bool) -> "PlacedPieces":
        """The pieces of words that follow each other, at the beginning of a text or within it."""
        written = running(rows, first)
        cut = self.tokenizer.encode("".join(written), add_special_tokens=False)
        ends = list(accumulate(map(len, written)))
        place, within = list[int](), list[int]()
        for start, _ in cut.offsets:
            word = max(place[-1] if place else 0, min(bisect_right(ends, start), len(ends) - 1))
            within.append(within[-1] + 1 if place and place[-1] == word else 0)
            place.append(word)
        return PlacedPieces(tuple(place), tuple(within), tuple(cut.ids))

    def length(self, example: Example) -> int:
        """Pieces of an example, with all symbols, however many a model reads."""
        start, end, between, last = map(len, self.wrappers)
        around = start + (end if len(example.texts) == 1 else between + last)
        return around + sum(len(self._cut(self.rows(text), True).ids) for text in example.verbatim if text)

    def cost(self, rows: Tensor) -> Tensor:
        """Pieces of every row, about: of a word by itself within a text, of a symbol around a single text."""
        some, at = rows.unique(return_inverse=True)
        return torch.tensor([self._alone(row) for row in some.tolist()], device=rows.device)[at]

    @cached_property
    def _alone(self) -> Callable[[int], int]:
        def pieces(row: int) -> int:
            return len(self._symbol(row, 0, 0) if row < FIRST else self._cut((row,), first=False).ids)

        return lru_cache(None)(pieces)

    def costs(self, tokens: Tensor, part: Tensor) -> Tensor:
        """Pieces of every row where it stands."""
        return self._grid(tokens, part).there.sum(-1)

    def without(self, rows: Tensor, by: "Gone") -> Tensor:
        """A word keeps its width, which its neighbours may have decided on: every row stands for itself."""
        some, at = rows.unique(return_inverse=True)
        numbers = [self._numbers.setdefault(row, len(self._numbers)) for row in some.tolist()]
        return (-2 * torch.tensor(numbers, device=rows.device)[at] - 1 - int(by == "unknown")).to(rows.dtype)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {}


class PlacedPieces(NamedTuple):
    """Pieces of a text in their order."""

    place: tuple[int, ...]  # of the word that each belongs to
    within: tuple[int, ...]  # which piece of its word it is, from 0
    ids: tuple[int, ...]


NOTHING = PlacedPieces((), (), ())


def kind_of_row(row: int) -> int:
    """Words are of one kind, whatever they are."""
    return min(row, FIRST)


def running(rows: Sequence[int], first: bool) -> list[str]:
    """Words with the characters before them: the text, once they are joined."""
    words = [word_of(row) for row in rows]
    return [
        word[1:] if word.startswith(MARK) else word if first and place == 0 else f" {word}"
        for place, word in enumerate(words)
    ]


def shortened(pieces: list[tuple[int, int, int]], texts: list[int], limit: int) -> list[tuple[int, int, int]]:
    """Texts cut at their ends until all fits, of two the longer one first, as transformers truncates."""
    sizes = Counter(text for text in texts if text >= 0)
    room = max(0, limit - texts.count(-1))
    left = {0: room}
    if len(sizes) == 2:
        short, long = sorted(sizes, key=lambda text: (sizes[text], text))
        fits = sizes[short] <= room // 2
        left = {short: sizes[short] if fits else room // 2}
        left[long] = room - left[short]
    kept = []
    for piece, text in zip(pieces, texts, strict=True):
        if text < 0 or left[text] > 0:
            kept.append(piece)
        if text >= 0:
            left[text] -= 1
    return kept


def reader_of(tokenizer: Any, limit: int | None = None, kind: type[WordPieces] = WordPieces, **more: Any) -> WordPieces:
    """Of a fast tokenizer of transformers: its rules as they are now, without padding, cut at a limit if given."""
    import tokenizers

    own = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    unknown_piece = tokenizer.unk_token_id
    given = (tokenizer.mask_token_id, unknown_piece, tokenizer.eos_token_id)
    unknown = next((piece for piece in given if piece is not None), 0)
    return kind((), True, own, unknown, unknown_piece, limit, **more)
