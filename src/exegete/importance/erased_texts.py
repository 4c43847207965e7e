"""Erased texts, written down: what a model sees of each is its key, and enough to build its batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Literal

import torch
from torch import Tensor

from exegete.tasks.batching import Batch
from exegete.tasks.reader import Reader
from exegete.tasks.vocabulary import PAD

Removal = Literal["delete", "zero", "unknown", "blocked"]
BLOCKED = -(1 << 30)  # below all that stands for a word that is zeroed or unknown: what is blocked is another text
NOTHING = (PAD, 0, -1, -1, 0)  # token, word, part and sentence of padding, which is not replaced


@dataclass(frozen=True)
class WrittenTexts:
    """Erased texts one after the other, without padding."""

    by: Removal
    reader: Reader
    tokens: Tensor  # [total, 5]: token, whether it is a word, its part, its sentence, and whether it is replaced
    lengths: Tensor  # [ask]: tokens that remain, wrappers included
    rows: Tensor  # [ask]: the text that it was
    deleted: Tensor  # [ask, token]: True on words that are not there any more
    candidates: Tensor | None = None  # [ask, candidate]: as in the batch

    @cached_property
    def keys(self) -> list[bytes]:
        """A digest of what remains, per ask: the texts themselves would be too large to keep."""
        seen = self._seen()
        ends = (self.lengths.cumsum(0) * seen.shape[1] * seen.element_size()).tolist()
        data = memoryview(seen.cpu().numpy().tobytes())
        keys = [blake2b(data[start:end], digest_size=16).digest() for start, end in zip([0, *ends], ends, strict=False)]
        if self.candidates is None:
            return keys
        return [key + row.cpu().numpy().tobytes() for key, row in zip(keys, self.candidates, strict=True)]

    def keys_of(self, asks: Tensor) -> list[bytes]:
        """The keys of some asks."""
        return [self.keys[i] for i in asks.tolist()]

    def _seen(self) -> Tensor:
        """What a model sees: words that are replaced look like all others that are."""  # [total, 4]
        token, gone = self.tokens[:, 0], self.tokens[:, -1].bool()
        if self.by == "blocked":
            token = torch.where(gone, self.reader.without(token, "zero") + BLOCKED, token)
        elif self.by != "delete":
            token = torch.where(gone, self.reader.without(token, self.by), token)
        return torch.cat([token[:, None], self.tokens[:, 1:-1]], 1)

    def batch(self, asks: Tensor) -> tuple[Batch, Tensor]:
        """Some erased texts as a batch, and which of its words are to be replaced [ask, token]."""
        lengths = self.lengths[asks]
        width = max(1, int(lengths.max()))  # as everywhere: a text without tokens is one of padding
        places = torch.arange(width, device=lengths.device)
        present = places < lengths[:, None]
        table = torch.tensor(NOTHING, dtype=self.tokens.dtype, device=lengths.device).repeat(len(asks), width, 1)
        table[present] = self.tokens[(self._starts[asks][:, None] + places)[present]]
        token, word, part, sentence, gone = table.long().unbind(-1)
        nobody = torch.zeros_like(asks)  # ids and labels: a result must not depend on whose text it was
        candidates = None if self.candidates is None else self.candidates[asks]
        batch = Batch(nobody, token, present, word.bool(), part, sentence, nobody, self.reader, candidates)
        return batch, gone.bool()

    @cached_property
    def costs(self) -> Tensor:
        """What reading each of them takes: [ask]."""
        total = self.reader.cost(self.tokens[:, 0].long()).cumsum(0)
        ends = torch.cat([total.new_zeros(1), total])[self.lengths.cumsum(0)]
        return ends.diff(prepend=ends.new_zeros(1))

    @cached_property
    def _starts(self) -> Tensor:
        return self.lengths.cumsum(0) - self.lengths


def write(batch: Batch, rows: Tensor, gone: Tensor, by: Removal) -> WrittenTexts:
    """Write down text rows[i] with its words gone[i] deleted, zeroed, made unknown or blocked."""
    columns: Sequence[Tensor] = (batch.tokens, batch.words, batch.part, batch.sentence)
    deleted, replaced = (gone if by == "delete" else torch.zeros_like(gone), gone.int())
    table = torch.cat([torch.stack([column.int() for column in columns], -1)[rows], replaced[..., None]], -1)
    remain = batch.present[rows] & ~deleted
    candidates = None if batch.candidates is None else batch.candidates[rows]
    return WrittenTexts(by, batch.reader, table[remain], remain.sum(-1), rows, deleted, candidates)
