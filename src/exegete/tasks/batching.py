"""Batches: examples as padded tensors; batches of one length need neither padding nor packing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from exegete.base.noise import uniform
from exegete.tasks.disk import Stored, index_of
from exegete.tasks.example import Example
from exegete.tasks.reader import Reader
from exegete.tasks.sentences import sentences
from exegete.tasks.token_ids import IdRecord, Numbered, number_split
from exegete.tasks.vocabulary import END, PAD, START, Vocabulary


class Batch(NamedTuple):
    """Examples side by side: all texts of an example on one flat token axis."""

    ids: Tensor  # [batch]: example ids
    tokens: Tensor  # [batch, token]: rows, as the reader has them
    present: Tensor  # [batch, token]: True on words and wrappers, False on padding
    words: Tensor  # [batch, token]: True on words of the explained text: what importances explain and may erase
    part: Tensor  # [batch, token]: which text a token belongs to, -1 on padding
    sentence: Tensor  # [batch, token]: which sentence of the example, from 0; -1 on padding and wrappers, so that
    # `sentence >= 0` are the words of all texts
    label: Tensor  # [batch]
    reader: Reader  # what read the words: rows are its own
    candidates: Tensor | None = None  # [batch, candidate]: the classes that may be chosen, -1 beyond; None: all

    def rows(self, which: Tensor, width: int | None = None) -> "Batch":
        """Some of its examples, perhaps only their first tokens."""

        def some(column: Tensor) -> Tensor:
            return column[which] if width is None else column[which, :width]

        return Batch(
            ids=self.ids[which],
            tokens=some(self.tokens),
            present=some(self.present),
            words=some(self.words),
            part=some(self.part),
            sentence=some(self.sentence),
            label=self.label[which],
            reader=self.reader,
            candidates=None if self.candidates is None else self.candidates[which],
        )

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device."""
        return self if self.tokens.device == device else Batch(*(_moved(column, device) for column in self))

    @property
    def lengths(self) -> Tensor:
        """Explained words of every example."""  # [batch]
        return self.words.sum(-1)

    @property
    def cost(self) -> Tensor:
        """What reading every token takes: 1, or its number of pieces; 0 on padding."""  # [batch, token]
        return self.reader.costs(self.tokens, self.part.where(self.present, -1)).where(self.present, 0)

    @property
    def ragged(self) -> bool:
        """Whether some example is padded."""
        return not bool(self.present.all())


def _moved(column: Any, device: torch.device) -> Any:
    return column.to(device) if isinstance(column, Tensor) else column


SHORT = 60  # words of a text that is kept flat: of long ones reading takes longer than this, and 10,000 are many


def _flat(texts: tuple[tuple[str, ...], ...], vocabulary: Vocabulary) -> IdRecord:
    """Tokens, their text, and their sentence (no word, no sentence), of one example; lists that nobody changes."""
    return (_kept_flat if sum(map(len, texts)) <= SHORT else _made_flat)(texts, vocabulary)


@lru_cache(maxsize=10_000)  # of an epoch's texts: the next one reads them again
def _kept_flat(texts: tuple[tuple[str, ...], ...], vocabulary: Vocabulary) -> IdRecord:
    return _made_flat(texts, vocabulary)


def _made_flat(texts: tuple[tuple[str, ...], ...], vocabulary: Vocabulary) -> IdRecord:
    tokens: list[int] = []
    part: list[int] = []
    sentence: list[int] = []
    before = 0  # sentences of earlier texts: no sentence goes on in another text
    for number, text in enumerate(texts):
        rows, numbers = vocabulary.rows(text), sentences([word.strip() for word in text])
        if before:
            numbers = [before + n for n in numbers]
        tokens += [START, *rows, END] if vocabulary.wrap else rows
        sentence += [-1, *numbers, -1] if vocabulary.wrap else numbers
        part += [number] * (len(rows) + 2 * vocabulary.wrap)
        before = numbers[-1] + 1 if numbers else before
    return tokens, part, sentence


def _padded(rows: Sequence[Sequence[int]], fill: int, width: int) -> Tensor:
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.int64).reshape(
        len(rows), width
    )


def collate(examples: Sequence[Example], vocabulary: Vocabulary) -> Batch:
    """Put examples side by side, padded on the right."""
    flat = _records(examples, vocabulary)
    width = max(1, max((len(tokens) for tokens, _, _ in flat), default=1))
    part = _padded([part for _, part, _ in flat], -1, width)
    sentence = _padded([sentence for _, _, sentence in flat], -1, width)
    index = index_of(examples)
    return Batch(
        ids=torch.from_numpy(np.array(index["id"], np.int64)),
        tokens=_padded([tokens for tokens, _, _ in flat], PAD, width),
        present=part >= 0,
        words=(sentence >= 0) & (part == _explained(examples)),
        part=part,
        sentence=sentence,
        label=torch.from_numpy(np.array(index["label"], np.int64)),
        reader=vocabulary,
        candidates=_candidates(examples),
    )


def with_token_ids(examples: Sequence[Example], vocabulary: Vocabulary) -> Sequence[Example]:
    """Examples that are read again and again: of those on disk, `collate` then reads numbers in place of words."""
    return number_split(examples, vocabulary)


def _records(examples: Sequence[Example], vocabulary: Vocabulary) -> Sequence[IdRecord]:
    """Tokens, their text and their sentence, of each."""
    if isinstance(examples, Numbered) and examples.ids.vocabulary == vocabulary:
        return examples.records()
    return [_flat(e.verbatim if vocabulary.verbatim else e.texts, vocabulary) for e in examples]


def _explained(examples: Sequence[Example]) -> Tensor | int:
    """Which text is explained: of stored examples the same everywhere."""
    if isinstance(examples, Stored):
        return examples.explained
    return torch.tensor([e.explained for e in examples])[:, None]


def _candidates(examples: Sequence[Example]) -> Tensor | None:
    """None unless some example has its own; one without may choose any class: a row of -1."""
    if isinstance(examples, Stored):
        return None
    width = max((len(e.candidates) for e in examples), default=0)
    return _padded([e.candidates for e in examples], -1, width) if width else None


def batches_by_cost(costs: Sequence[int], size: int, budget: int, shuffle: int | None = None) -> Iterator[list[int]]:
    """Indices of at most `size` examples that take about equally long to read, `budget` together with their padding.

    Shuffled as `batches_of_one_length` does it.
    """
    order = list(range(len(costs)))
    if shuffle is not None:
        order = uniform(shuffle, torch.arange(len(costs))).argsort().tolist()
    cut: list[list[int]] = []
    for i in sorted(order, key=lambda i: costs[i]):
        if not cut or len(cut[-1]) >= size or (len(cut[-1]) + 1) * costs[i] > budget:
            cut.append([])
        cut[-1].append(i)
    if shuffle is not None:
        cut = [cut[i] for i in uniform(shuffle, -1, torch.arange(len(cut))).argsort().tolist()]
    yield from cut


def batches_of_one_length(
    examples: Sequence[Example], size: int, budget: int, shuffle: int | None = None
) -> Iterator[list[int]]:
    """Indices of at most `size` examples and `budget` words that all have one length (PyTorch then needs no packing).

    With `shuffle` (a seed, mixed with the epoch by the caller) the members of a batch and the order of the batches are
    a keyed shuffle: the same in every process. Without it, the shortest come first. Examples of several texts are put
    beside others whose further texts are about as long: a third of all steps of translations would be padding.
    """
    order = list(range(len(examples)))
    if shuffle is not None:
        order = uniform(shuffle, torch.arange(len(examples))).argsort().tolist()
    sizes = index_of(examples)[["length", "all_words"]].tolist()
    by_length: dict[int, list[int]] = defaultdict(list)
    for i in sorted(order, key=lambda i: sizes[i][1]):
        by_length[sizes[i][0]].append(i)
    cut = [
        members[start:end]
        for length, members in sorted(by_length.items())
        for start, end in pairwise([*range(0, len(members), max(1, min(size, budget // max(1, length)))), len(members)])
    ]
    if shuffle is not None:
        cut = [cut[i] for i in uniform(shuffle, -1, torch.arange(len(cut))).argsort().tolist()]
    yield from cut
