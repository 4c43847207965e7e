"""Sentences: which sentence of its text a word belongs to, decided from the words alone.

Texts are tokenised when they arrive: line breaks are gone, and a full stop is a word or the end of one. So the rules
are rules of thumb. A sentence ends after . ! ? … and runs of them, and the quotes and brackets that close after it
belong to it. No sentence ends after an initial or a common abbreviation. A text without any end is one sentence.

Every word is one of a few kinds, and a text is written with a letter per word: what a sentence is, is then a regular
expression. Kinds are remembered by word, so that a batch of texts costs little more than looking up its words.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

# o: any other word, a: an abbreviation without its full stop, p: a full stop, e: another mark that ends a sentence,
# w: a word with an end attached ("film."), q: what may close after an end, d: a straight quote, which opens or closes.
_SENTENCE = re.compile(r"[oq]*[pew][peq]*|[oq]+")
_ABBREVIATED = re.compile(r"ap")
_QUOTED = re.compile(r"d([^d]*)d")

_MARKS = re.compile(r"[.!?…]")
_CLOSING = re.compile(r"(?:[.!?…'\"’”»)\]}]+|-r[rsc]b-)", re.IGNORECASE)  # what may follow an end; also ''
_ATTACHED = re.compile(r"[.!?…]['\"’”»)\]}]*$")
_DOTTED = re.compile(r"\W*(?:[^\W\d_]\.){2,}")  # U.S., e.g.
_TITLES = "mr mrs ms dr prof st rev gen col capt lt sgt sen rep gov hon mt mme mlle"
_OTHERS = "vs cf eg ie approx vol fig inc corp co ltd jr sr jan feb aug sept oct nov dec"
_ABBREVIATIONS = frozenset((_TITLES + " " + _OTHERS).split())
_LETTERS_THAT_ARE_WORDS = frozenset("ai")  # "so do I." ends, "J. Doe" doesn't


def sentences(words: Sequence[str]) -> list[int]:
    """The sentence of every word, counted from 0.

    >>> sentences('" Go ! " he said . Why ?'.split())
    [0, 0, 0, 0, 1, 1, 1, 2, 2]
    >>> sentences("Dr . Jekyll and Mr. Hyde".split())
    [0, 0, 0, 0, 0, 0]
    """
    numbers: list[int] = []
    for number, length in enumerate(sentence_lengths("".join(map(word_kind, words)))):
        numbers += [number] * length
    return numbers


def sentence_lengths(kinds: str) -> list[int]:
    """The words of every sentence of a text that is written with a letter per word (`word_kind`)."""
    return list(map(len, _SENTENCE.findall(_written(kinds))))


def split_sentences(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The sentences of a text; one after the other they are the text.

    >>> split_sentences("good . bad".split())
    [('good', '.'), ('bad',)]
    """
    found: list[tuple[str, ...]] = []
    for word, number in zip(words, sentences(words), strict=True):
        if number == len(found):
            found.append(())
        found[number] += (word,)
    return found


def _written(kinds: str) -> str:
    """Kinds in which an abbreviation has its full stop, and straight quotes open and close in turn."""
    if "a" in kinds:
        kinds = _ABBREVIATED.sub("oo", kinds).replace("a", "o")
    if "d" in kinds:
        kinds = _QUOTED.sub(r"o\1q", kinds)
        kinds = kinds[:-1].replace("d", "o") + kinds[-1].replace("d", "q")  # nothing is opened by a last word
    return kinds


@lru_cache(maxsize=1 << 18)
def word_kind(word: str) -> str:
    """The letter that stands for a word."""
    if word in {".", '"'}:
        return "p" if word == "." else "d"
    if _CLOSING.fullmatch(word):
        return "e" if _MARKS.search(word) else "q"
    if _ATTACHED.search(word):
        short = word.endswith(".") and (_DOTTED.fullmatch(word) or _is_abbreviation(word[:-1].lstrip("(['\"“‘`")))
        return "o" if short else "w"
    return "a" if _is_abbreviation(word) else "o"


def _is_abbreviation(word: str) -> bool:
    """A title, an initial or another short form that a full stop may follow within a sentence."""
    lower = word.lower()
    if len(lower) == 1:
        return lower.isalpha() and lower not in _LETTERS_THAT_ARE_WORDS
    return lower in _ABBREVIATIONS
