"""Tokenizers: a text in, its words out.

No token crosses white space: tokenising the white-space words of a text one by one gives the tokens of the text. So
rationale spans, which count white-space words, find their tokens.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from sys import intern

from exegete.tasks import scripts

Tokenizer = Callable[[str], list[str]]

_TOKEN = re.compile(
    r"""
      '(?:s|re|ve|ll|d|m)(?![^\W_])      # a clitic that was split off before: he 's
    | (?:[^\W\d_]\.){2,}                 # U.S., e.g.
    | \d+(?:[.,:/-]\d+)+(?![^\W_])       # 3.5, 10,000, 7/10, 1990-91
    | [^\W_]+(?:['-][^\W_]+)*            # well-known, o'clock, don't (cut further below)
    | (.)\1*                             # a run of one mark: ..., --, !!!
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MARKS = frozenset('.,;:!?)"')
_KEPT = 1 << 17  # white-space words of which the tokens are kept
LONGEST = 3  # letters of a clitic: n't, 'll
_CLITIC = re.compile(r"(?<=[^\W_])(?:n't|'(?:s|re|ve|ll|d|m))$", re.IGNORECASE)


def whitespace(text: str) -> list[str]:
    """The text cut at white space, for texts that are tokenised already."""
    return list(map(intern, text.split()))  # a corpus repeats its words: one object for all copies


def penn_words(text: str) -> list[str]:
    """Words and punctuation, with contractions cut as in the Penn Treebank, so that GloVe knows the pieces.

    >>> penn_words("I don't like it, it's well-known (7/10)...")
    ['I', 'do', "n't", 'like', 'it', ',', 'it', "'s", 'well-known', '(', '7/10', ')', '...']
    """
    return list(chain.from_iterable(map(_WORDS.__getitem__, text.split())))


def jain_wallace(text: str) -> list[str]:
    """The cleaner of Jain & Wallace (2019), with regular expressions in place of spaCy's rules.

    Words and punctuation, lower-cased; compounds are cut at hyphens; a token with a digit becomes `qqq`.

    >>> jain_wallace("A well-known film of the 1970s.")
    ['a', 'well', '-', 'known', 'film', 'of', 'the', 'qqq', '.']
    """
    return list(chain.from_iterable(map(_CLEANED.__getitem__, text.split())))


def characters(text: str) -> list[str]:
    """As `penn_words`, and single characters of the scripts that have no spaces between words.

    >>> characters("这部电影, isn't it?")
    ['这', '部', '电', '影', ',', 'is', "n't", 'it', '?']
    """
    return list(chain.from_iterable(map(_CHARACTERS.__getitem__, text.split())))


def as_written(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Every word of a text with the characters before it, the last one also with those after it.

    >>> as_written("A  good\\nfilm ", ["A", "good", "film"])
    ('A', '  good', '\\nfilm ')
    """
    plain, ends = text.replace("’", "'"), [0]
    for word in words:
        ends.append(plain.index(word.replace("’", "'"), ends[-1]) + len(word))
    ends[-1] = len(text)
    return tuple(text[start:end] for start, end in pairwise(ends))


VERBATIM = ("whitespace", "characters")  # cut a text and change nothing of it
TOKENIZERS: dict[str, Tokenizer] = {
    "whitespace": whitespace,
    "words": penn_words,
    "jain_wallace": jain_wallace,
    "characters": characters,
}


class _Tokens(dict[str, tuple[str, ...]]):
    """The tokens of white-space words: each is cut once, which is most of the speed, and its tokens are one object."""

    def __init__(self, cut: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._cut = cut

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _KEPT:
            self.clear()
        tokens = self[word] = self._cut(word)
        return tokens


def _pieces(word: str) -> tuple[str, ...]:
    """The tokens of one white-space word."""
    if word.isalnum():
        return (word,)
    if word[-1] in _MARKS and word[:-1].isalnum():
        return (word[:-1], word[-1])
    plain = word.replace("’", "'")  # GloVe's contractions have the straight apostrophe
    return tuple(piece for match in _TOKEN.finditer(plain) for piece in _without_clitics(match[0]))


def _characters(word: str) -> tuple[str, ...]:
    """The tokens of one white-space word, in scripts that have spaces and in those that have none."""
    return tuple(piece for part in scripts.split_characters(word) for piece in _WORDS[part])


def _without_clitics(token: str) -> list[str]:
    """Cut clitics off the end: couldn't've is could, n't, 've."""
    if "'" not in token:
        return [token]
    clitics: list[str] = []
    while match := _CLITIC.search(token, max(0, len(token) - LONGEST)):  # at its end: a long word is not searched anew
        clitics.insert(0, match[0])
        token = token[: match.start()]
    return [token, *clitics]


def _cleaned(word: str) -> tuple[str, ...]:
    """The tokens of one white-space word as Jain & Wallace clean them."""
    return tuple(_masked(part.lower()) for piece in _WORDS[word] for part in _at_hyphens(piece))


def _at_hyphens(piece: str) -> list[str]:
    """A compound cut at its hyphens; numbers (masked whole) and runs of marks stay."""
    compound = piece[0].isalnum() and not any(c.isdigit() for c in piece)
    return re.split("(-)", piece) if compound else [piece]


def _masked(token: str) -> str:
    return "qqq" if any(c.isdigit() for c in token) else token


_WORDS, _CHARACTERS, _CLEANED = _Tokens(_pieces), _Tokens(_characters), _Tokens(_cleaned)
