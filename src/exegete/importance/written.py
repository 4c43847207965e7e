"""Erased texts, written down: what a model sees of each is its key, and enough to build its batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import torch
from torch import Tensor

from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, UNKNOWN

ZEROED = -1  # the token that stands for a word whose embedding is zero
NOTHING = (PAD, 0, -1, -1)  # token, word, part and sentence of padding


@dataclass(frozen=True)
class Written:
    """Erased texts one after the other, without padding."""

    tokens: Tensor  # [total, 4]: token, whether it is a word, its part and its sentence
    lengths: Tensor  # [ask]: tokens that remain, wrappers included
    rows: Tensor  # [ask]: the text that it was
    deleted: Tensor  # [ask, token]: True on words that are not there any more
    candidates: Tensor | None = None  # [ask, candidate]: as in the batch

    @cached_property
    def keys(self) -> list[bytes]:
        """A digest of what remains, per ask: the texts themselves would be too large to keep."""
        ends = (self.lengths.cumsum(0) * self.tokens.shape[1] * self.tokens.element_size()).tolist()
        data = memoryview(self.tokens.numpy().tobytes())
        keys = [blake2b(data[start:end], digest_size=16).digest() for start, end in zip([0, *ends], ends, strict=False)]
        if self.candidates is None:
            return keys
        return [key + row.numpy().tobytes() for key, row in zip(keys, self.candidates, strict=True)]

    def keys_of(self, asks: Tensor) -> list[bytes]:
        """The keys of some asks."""
        return [self.keys[i] for i in asks.tolist()]

    def batch(self, asks: Tensor) -> Batch:
        """Some erased texts as a batch; zeroed words are tokens −1."""
        lengths = self.lengths[asks]
        width = max(1, int(lengths.max()))  # as everywhere: a text without tokens is one of padding
        places = torch.arange(width)
        present = places < lengths[:, None]
        table = torch.tensor(NOTHING, dtype=self.tokens.dtype).repeat(len(asks), width, 1)
        table[present] = self.tokens[(self._starts[asks][:, None] + places)[present]]
        token, word, part, sentence = table.long().unbind(-1)
        nobody = torch.zeros_like(asks)  # ids and labels: a result must not depend on whose text it was
        candidates = None if self.candidates is None else self.candidates[asks]
        return Batch(nobody, token, present, word.bool(), part, sentence, nobody, candidates)

    @cached_property
    def _starts(self) -> Tensor:
        return self.lengths.cumsum(0) - self.lengths


def write(batch: Batch, rows: Tensor, gone: Tensor, by: str) -> Written:
    """Write down text rows[i] with its words gone[i] deleted, zeroed or replaced by the unknown word."""
    columns: Sequence[Tensor] = (batch.tokens, batch.words, batch.part, batch.sentence)
    table = torch.stack([column.int() for column in columns], -1)[rows]  # [ask, token, 4]
    deleted = gone if by == "delete" else torch.zeros_like(gone)
    if by != "delete":
        table[..., 0].masked_fill_(gone, ZEROED if by == "zero" else UNKNOWN)
    remain = batch.present[rows] & ~deleted
    candidates = None if batch.candidates is None else batch.candidates[rows]
    return Written(table[remain], remain.sum(-1), rows, deleted, candidates)
