"""Parts: one text of every example of a batch, taken off the flat token axis and padded on its own."""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.tasks.batching import Batch

PASSAGE, QUESTION = 0, 1  # the texts of an example of a pair task


class TextPart(NamedTuple):
    """One text of every example, side by side."""

    place: Tensor  # [batch, key]: its column on the flat axis; 0 on padding
    present: Tensor  # [batch, key]: True on words and wrappers
    words: Tensor  # [batch, key]: True on words, whether they are explained or not
    owner: Tensor  # [batch, token]: the key of a word of this text, -1 elsewhere

    def take(self, flat: Tensor) -> Tensor:
        """What belongs to this text, of something on the flat axis: [batch, token, ...] -> [batch, key, ...]."""
        rows = places(flat, 0)[:, None]
        return flat[rows, self.place] * self.present.view(*self.present.shape, *[1] * (flat.dim() - 2)).to(flat.dtype)


def part_of(batch: Batch, number: int) -> TextPart:
    """Text `number` of every example; a batch without any token of it has one place of padding."""
    here = (batch.part == number) & batch.present
    length = here.sum(-1)
    width = max(1, int(length.max()))
    first = here.byte().argmax(-1)  # a text is in one piece
    key = torch.arange(width, device=length.device)
    present = key < length[:, None]
    place = torch.where(present, first[:, None] + key, 0)
    words = present & (batch.sentence >= 0).gather(1, place)
    column = places(batch.tokens)
    owner = torch.where(here & (batch.sentence >= 0), column - first[:, None], -1)
    return TextPart(place, present, words, owner)
