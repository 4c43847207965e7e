"""Pieces: words cut into frequent parts, so that a small vocabulary can write any word (Sennrich et al. 2016).

Byte-pair encoding is learnt on both languages together: starting from single characters, the most frequent pair of
neighbours becomes one piece, again and again, until the vocabulary is full. A piece that begins a white-space word
begins with the mark ▁, so pieces join back to the text exactly, up to white space. No piece holds both letters and
punctuation. A character that training never showed becomes the unknown piece.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import chain
from sys import intern
from typing import Any

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.extras import install
from exegete.tasks.vocabulary import SPECIAL, UNKNOWN

MARK = "▁"
UNKNOWN_PIECE = SPECIAL[UNKNOWN]
MIN_FREQUENCY = 2  # a pair that occurs once is no part of the language
_NOT_A_MARK = "\ufffe"  # a ▁ of the text itself: no character, so never learnt and always unknown
_UNIT = re.compile(rf"{MARK}?\w+|{MARK}?[^\w{MARK}]+|{MARK}")  # what merges stay within


@dataclass(frozen=True)
class Pieces:
    """Cuts texts as it was learnt; `json` is all of it, to be kept with a model."""

    json: str
    lower: bool = False
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cut(self, text: str) -> tuple[str, ...]:
        """The pieces of a text.

        >>> learnt = learn_pieces(["low lower lowest", "low slow"], 12)
        >>> learnt.cut("low, below!")
        ('▁low', '<unk>', '▁', '<unk>', 'e', 'low', '<unk>')
        """
        known = self._known
        words = (text.lower() if self.lower else text).split()
        return tuple(chain.from_iterable(known[word] if word in known else self._cut(word) for word in words))

    def _cut(self, word: str) -> tuple[str, ...]:
        """Every distinct word is cut once, and its pieces are one object for all copies."""
        tokens = (token for unit in _units(word, _NOT_A_MARK) for token in self._tokenizer.model.tokenize(unit))
        pieces = self._known[word] = tuple(intern(token.value) for token in tokens)
        return pieces

    @cached_property
    def _tokenizer(self) -> Any:
        return _package().Tokenizer.from_str(self.json)


def learn_pieces(texts: Iterable[str], size: int, lower: bool = False) -> Pieces:
    """A vocabulary of at most `size` pieces, characters included; the same texts give the same pieces everywhere."""
    package = _package()
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    tokenizer = package.Tokenizer(BPE(unk_token=UNKNOWN_PIECE))
    trainer = BpeTrainer(
        vocab_size=size + 1, min_frequency=MIN_FREQUENCY, special_tokens=[UNKNOWN_PIECE], show_progress=False
    )
    units = cache(partial(_units, mark=""))
    words = ((text.lower() if lower else text).split() for text in texts)
    tokenizer.train_from_iterator((list(chain.from_iterable(map(units, text))) for text in words), trainer)
    learnt = tokenizer.get_vocab_size() - 1
    if learnt > size:
        raise UsageError(f"pieces={size} is fewer than the {learnt} different characters of train: ask for more")
    return Pieces(tokenizer.to_str(), lower)


def whole_words(text: str, lower: bool = False) -> tuple[str, ...]:
    """Every white-space word as one piece.

    >>> whole_words("two red dogs")
    ('▁two', '▁red', '▁dogs')
    """
    return tuple(intern(MARK + word) for word in (text.lower() if lower else text).split())


def join_pieces(pieces: Iterable[str]) -> str:
    """The text that pieces spell, with single spaces.

    >>> join_pieces(["▁", "(", "low", "er", ")", "▁house"])
    '(lower) house'
    """
    return " ".join("".join(pieces).replace(MARK, " ").split())


def word_of_piece(pieces: Sequence[str]) -> list[int]:
    """For every piece, the white-space word of the joined text that it is part of.

    A mark without letters belongs to the word that it begins, at the very end to the last one.

    >>> word_of_piece(["▁", "(", "low", "er", ")", "▁house"])
    [0, 0, 0, 0, 0, 1]
    """
    words: list[int] = []
    current, letters = 0, False  # whether the current word has any yet
    for piece in pieces:
        if piece.startswith(MARK) and letters:
            current, letters = current + 1, False
        letters = letters or piece != MARK
        words.append(current)
    return words if letters or not current else [min(word, current - 1) for word in words]


def unknown_count(texts: Iterable[Sequence[str]]) -> int:
    """How many characters became the unknown piece."""
    return sum(text.count(UNKNOWN_PIECE) for text in texts)


def _units(word: str, mark: str) -> list[str]:
    """A white-space word with its mark in front, cut between letters and all else; `mark` replaces marks of its own."""
    return _UNIT.findall(MARK + word.replace(MARK, mark))


def _package() -> Any:
    # One thread per process, here as everywhere: and a process that forks later is not warned about its threads.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import tokenizers
    except ImportError:
        raise ExegeteError(f"translation cuts words with the package tokenizers: {install('translation')}") from None
    return tokenizers
