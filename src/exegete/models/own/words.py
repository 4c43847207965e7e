"""Own words: the vocabulary and the classes of a module that was trained elsewhere, beside those of a task."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.own.adapter import OwnModel
from exegete.tasks.vocabulary import PAD, SPECIAL, Vocabulary

# As people write them, in any case.
PADDING, UNKNOWN_WORDS = ("<pad>", "[pad]"), ("<unk>", "[unk]", "<unknown>", "<oov>")


class NumberedWords(NamedTuple):
    """Words as we number them, and where the module has them."""

    vocabulary: Vocabulary
    rows: Tensor  # [word]


def known_words(own: OwnModel, vocabulary: Vocabulary) -> NumberedWords:
    """The task's words in their own rows; or the module's own words, in its own."""
    given = own.vocabulary
    if given is None:
        return NumberedWords(vocabulary, torch.arange(len(vocabulary)))
    place = dict(given) if isinstance(given, Mapping) else {word: row for row, word in enumerate(given)}
    if not isinstance(given, Mapping) and len(place) < len(given):
        raise UsageError(f"the vocabulary of {type(own).__name__} has a word twice: name every word once")
    unknown = _found(place, (own.unknown,) if own.unknown else UNKNOWN_WORDS)
    if unknown is None:
        raise UsageError(
            f"the vocabulary of {type(own).__name__} doesn't tell which word stands for unknown ones: set "
            "unknown = '…' to one of its words"
        )
    padding = _found(place, PADDING)
    words = tuple(w for w in sorted(place, key=lambda w: place[w]) if w not in (unknown, padding, *SPECIAL))
    special = [place[unknown]] * len(SPECIAL)
    special[PAD] = place[unknown if padding is None else padding]
    return NumberedWords(Vocabulary(words), torch.tensor([*special, *(place[word] for word in words)]))


def _found(place: Mapping[str, int], names: Sequence[str]) -> str | None:
    """The first of these names that is a word, however it is written."""
    written = {word.lower(): word for word in place} | {word: word for word in place}
    return next((written[name] for name in names if name in written), None)


def own_class_order(own: OwnModel, labels: tuple[str, ...]) -> Tensor | None:
    """Where the task's classes are among the module's logits; None: in the same order."""
    if own.labels is None:
        return None
    theirs = [str(label) for label in own.labels]
    if sorted(theirs) != sorted(labels):
        raise UsageError(
            f"{type(own).__name__} predicts the classes {', '.join(theirs)}, and the task has {', '.join(labels)}: "
            "give its `labels` the task's names, in the order of its logits"
        )
    return torch.tensor([theirs.index(label) for label in labels])
