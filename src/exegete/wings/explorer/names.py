"""Names: what a key or a query of a site is called, for a person."""

from collections import Counter
from collections.abc import Iterator, Sequence

NULL = "∅"  # a key that is no word, and takes the weight that no word has
LETTERS = 32  # of a key that is a sentence


def name_of_key(key: int, owner: Sequence[int], spelled: Sequence[str]) -> str:
    """The words that a key stands for, in one line."""
    return shorten_key(" ".join(word for word, of in zip(spelled, owner, strict=True) if of == key)) or NULL


def shorten_key(words: str) -> str:
    """The beginning of what is too long for a line."""
    return words if len(words) <= LETTERS else f"{words[: LETTERS - 1]}…"


def names_of_pieces(owner: Sequence[int], tokens: Sequence[str]) -> Iterator[str]:
    """Pieces by the places of their words: each is its word, with its number where the word has several."""
    counts, seen = Counter(owner), Counter[int]()
    for word in owner:
        seen[word] += 1
        yield tokens[word] if counts[word] == 1 else f"{tokens[word]} {seen[word]}/{counts[word]}"
