"""Vocabulary: words to rows of an embedding table, fitted on the training split only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from exegete.tasks.example import Example

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


@dataclass(frozen=True)
class Vocabulary:
    """Rows 0 to 3 are padding, the unknown word, start and end of a text; then the words, in alphabetical order."""

    words: tuple[str, ...]
    wrap: bool = False  # bracket every text with start and end, as Jain & Wallace do
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {word: row for row, word in enumerate((*SPECIAL, *self.words))})

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def rows(self, words: Sequence[str]) -> list[int]:
        """The row of every word; a word that training did not show is the unknown word."""
        return [self.index.get(word, UNKNOWN) for word in words]


def fit_vocabulary(examples: Iterable[Example], min_df: int = 1, wrap: bool = False) -> Vocabulary:
    """All words that occur in at least `min_df` training texts."""
    documents: Counter[str] = Counter()
    for example in examples:
        documents.update(set(example.all_words))
    kept = (word for word, count in documents.items() if count >= min_df and word not in SPECIAL)
    return Vocabulary(tuple(sorted(kept)), wrap)
