"""Texts of synthetic words: fillers as often as Zipf's law says, and among them cues that speak for a class.

Words of the tail are in the texts and not in the vocabulary, as rare words are: training shows the unknown word. All is
drawn by keys (seed, text, place), so that a text is the same however many are drawn.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.tasks.vocabulary import Vocabulary

COMMON = 20  # the most frequent words, which modify nothing


@dataclass(frozen=True)
class Language:
    """What texts are drawn from."""

    seed: int
    fillers: int = 300  # kinds of words, rare ones included
    rare: int = 60  # of these, the last are not in the vocabulary
    zipf: float = 1.0
    shortest: int = 8
    longest: int = 16
    kinds: int = 20  # of cues; every other one speaks for the first class
    fewest: int = 1  # cues in a text
    most: int = 1
    pure: float = 1.0  # of the cues of a text, those that speak for the text's own side
    balance: float = 0.5  # texts on the side of the second class
    modifiers: int = 0  # of the fillers, those that modify a cue after them
    modified: float = 0.0  # cues that have one before them
    stop: bool = False  # the most frequent filler ends every text, and is nowhere else

    @property
    def words(self) -> tuple[str, ...]:
        """All words, by number: cues, then fillers, the most frequent first."""
        return tuple(f"c{i:03}" for i in range(self.kinds)) + tuple(f"w{i:04}" for i in range(self.fillers))

    def vocabulary(self, wrap: bool) -> Vocabulary:
        """The words that a model knows."""
        return Vocabulary(self.words[: self.kinds + self.fillers - self.rare], wrap)

    def texts(self, split: str, count: int) -> list[tuple[str, ...]]:
        """So many texts of a split."""
        words, lengths, rows = self.words, *self._rows(split, count)
        return [tuple(words[row] for row in text[:length]) for text, length in zip(rows, lengths, strict=True)]

    def _rows(self, split: str, count: int) -> tuple[list[int], list[list[int]]]:
        text, place = torch.arange(count)[:, None], torch.arange(self.longest)

        def noise(what: str, *where: Tensor | int) -> Tensor:
            return uniform(stable_seed("language", self.seed, split, what), *where)

        lengths = self._between(noise("length", text), self.shortest, self.longest)  # [text, 1]
        cues = self._between(noise("cues", text), self.fewest, self.most)
        inside = place < lengths - int(self.stop)
        is_cue = noise("place", text, place).masked_fill(~inside, 2.0).argsort(-1).argsort(-1) < cues
        side = (noise("side", text) < self.balance) ^ (noise("pure", text, place) > self.pure)
        cue = 2 * (noise("cue", text, place) * (self.kinds // 2)).long() + side.long()
        rank = torch.arange(1, self.fillers + 1, dtype=torch.float64).pow(-self.zipf)
        filler = torch.searchsorted(rank.cumsum(0) / rank.sum(), noise("filler", text, place)).clamp(
            max=self.fillers - 1
        )
        before = torch.zeros_like(is_cue)
        before[:, :-1] = is_cue[:, 1:]
        modifies = before & ~is_cue & (noise("modified", text, place) < self.modified)
        filler = torch.where(modifies, COMMON + (noise("modifier", text, place) * self.modifiers).long(), filler)
        if self.stop:
            filler = torch.where(place == lengths - 1, 0, filler.clamp(min=1))
        return lengths[:, 0].tolist(), torch.where(is_cue, cue, self.kinds + filler).tolist()

    @staticmethod
    def _between(noise: Tensor, low: int, high: int) -> Tensor:
        return low + (noise * (high - low + 1)).long()
