"""Prompt pieces: a text within its prompt, cut whole, every piece given to the word in which its first letter lies.

What stands before and after the words (a template, examples, the turns of a chat) are the start and end symbols of a
batch: nobody explains or erases them. Segments that are cut apart are not the text: a line break joins the piece before
it. So all is cut at once, and a piece that begins with the space before a word is the word's. Of a text that spells a
symbol of the tokenizer (`<|im_end|>`) the words are cut apart, as letters: only the template may end a turn.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from exegete.models.huggingface.word_pieces import (
    NOTHING,
    PlacedPieces,
    WordPieces,
    Wrappers,
    kind_of_row,
    running,
    shortened,
)
from exegete.tasks.example import Example
from exegete.tasks.open_words import FIRST
from exegete.tasks.vocabulary import END, START, UNKNOWN


class _Part(NamedTuple):
    """Characters that belong to one place of a batch."""

    place: int
    text: str
    is_word: bool


@dataclass(frozen=True, eq=False)
class PromptPieces(WordPieces):
    """Words between the pieces of a prompt; without one, after the tokenizer's start symbol, if it writes one."""

    before: str = ""
    after: str = ""
    chat: bool = False  # the template writes all symbols; else the tokenizer's own come first

    @cached_property
    def fingerprint(self) -> str:
        """Of the prompt, too."""
        own: str = super().fingerprint
        return hashlib.sha256(repr((own, self.before, self.after, self.chat)).encode()).hexdigest()[:16]

    @cached_property
    def wrappers(self) -> Wrappers:
        """The symbols before a text. None after it: the next piece is what is asked for."""
        return Wrappers(() if self.chat else self._around("a")[0], (), (), ())

    def _symbol(self, row: int, of: int, last: int) -> tuple[int, ...]:
        """The pieces of the prompt by itself, about."""
        if row in (START, END):
            text = self.before if row == START else self.after
            cut = self.tokenizer.encode(text, add_special_tokens=False).ids if text else ()
            return (*(self.wrappers.start if row == START else ()), *cut)
        return super()._symbol(row, of, last)

    def length(self, example: Example) -> int:
        """Pieces of a text within its prompt, however many a model reads."""
        return len(self.ids(example))

    def ids(self, example: Example) -> list[int]:
        """The pieces of a text within its prompt."""
        rows = (START, *self.rows(example.verbatim[0]), END)
        return [piece for _, _, piece in self._uncut(rows, (0,) * len(rows))[0]]

    def following(self, example: Example, answer: str) -> tuple[int, ...] | None:
        """The pieces of what is written after a text; None where it is cut together with the text's end."""
        before, whole = self.ids(example), replace(self, after=self.after + answer).ids(example)
        return tuple(whole[len(before) :]) if whole[: len(before)] == before else None

    def _pieces_of_example(self, tokens: tuple[int, ...], part: tuple[int, ...]) -> PlacedPieces:
        pieces, texts = self._uncut(tokens, part)
        if self.limit is not None and len(pieces) > self.limit:
            pieces = shortened(pieces, texts, self.limit)
        return PlacedPieces(*zip(*pieces, strict=True)) if pieces else NOTHING

    def _uncut(self, tokens: Sequence[int], part: Sequence[int]) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Pieces as (place, which of its word, id), and of each the text that it is of, -1 of the prompt's."""
        there = [(kind_of_row(row), place, row) for place, row in enumerate(tokens) if part[place] >= 0]
        owned: list[tuple[int, int]] = []  # place, id
        parts: list[_Part] = []
        begun = False
        for kind, run in groupby(there, key=itemgetter(0)):
            _, places, rows = zip(*run, strict=True)
            if kind == START:
                owned += [(places[0], piece) for piece in self.wrappers.start]
                parts += [_Part(places[0], self.before, is_word=False)]
            elif kind == END:
                parts += [_Part(places[0], self.after, is_word=False)]
            elif kind == FIRST:
                words = zip(places, running(rows, not begun), strict=True)
                parts, begun = [*parts, *(_Part(place, text, is_word=True) for place, text in words)], True
            else:  # a word made unknown is one piece, and what is around it is cut apart
                owned += self._cut_parts(parts)
                owned, parts = owned + [(place, self.unknown) for place in places if kind == UNKNOWN], []
        owned += self._cut_parts(parts)
        pieces = [(place, n, piece) for place, run in groupby(owned, itemgetter(0)) for n, (_, piece) in enumerate(run)]
        is_word = {place for kind, place, _ in there if kind in (FIRST, UNKNOWN)}
        return pieces, [0 if place in is_word else -1 for place, _, _ in pieces]

    def _cut_parts(self, parts: Sequence[_Part]) -> list[tuple[int, int]]:
        """Cut at once; apart where words spell a symbol, which are letters to a reader."""
        words = "".join(part.text for part in parts if part.is_word)
        if not self.before + self.after or not any(symbol in words for symbol in self._symbols):
            return self._placed(parts, self.tokenizer)
        runs = [list(run) for _, run in groupby(parts, key=lambda part: part.is_word)]
        return list(
            chain.from_iterable(self._placed(run, self._letters if run[0].is_word else self.tokenizer) for run in runs)
        )

    @staticmethod
    def _placed(parts: Sequence[_Part], tokenizer: Any) -> list[tuple[int, int]]:
        text = "".join(part.text for part in parts)
        ends = list(accumulate(len(part.text) for part in parts))
        cut = tokenizer.encode(text, add_special_tokens=False) if text else None
        found, at = list[tuple[int, int]](), 0
        for piece, (start, end) in zip(cut.ids, cut.offsets, strict=True) if cut else ():
            letter = next((i for i in range(start, end) if not text[i].isspace()), start)
            while at < len(parts) - 1 and letter >= ends[at]:
                at += 1
            found.append((parts[at].place, piece))
        return found

    @cached_property
    def _symbols(self) -> tuple[str, ...]:
        return tuple(each.content for each in self.tokenizer.get_added_tokens_decoder().values() if each.special)

    @cached_property
    def _letters(self) -> Any:
        """The tokenizer, to which its symbols are letters like others."""
        plain = type(self.tokenizer).from_str(self.tokenizer.to_str())
        plain.encode_special_tokens = True
        return plain
