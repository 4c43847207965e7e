"""Baselines: orders of words that know nothing of attention, beside which a reading must be seen.

- *position*: the first words of a text first, or the last, whichever was better where readings are chosen;
- *idf*: rare words first, log N / df over the training texts (of the others, where there are none);
- *word type*: the mean effect of the same word where readings are chosen; a word that was not seen there has the mean
  of all. It is what a table of words would give, without any model at hand.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task

POSITION, IDF, TYPE = "position", "idf", "word type"


@dataclass(frozen=True)
class Baselines:
    """What there is to know of words without a model."""

    idf: Mapping[str, float]
    types: Mapping[str, float]
    first: bool  # the first words first

    def scores(self, examples: Sequence[Example], batch: Batch, judging: bool = False) -> dict[str, Tensor]:
        """By baseline: [text, token], NaN where no word is; word types only of texts that they were not taken from."""
        place = (batch.words.cumsum(-1) - 1).double()
        found = {
            POSITION: (place.max() - place if self.first else place).where(batch.words, torch.nan),
            IDF: _looked_up(self.idf, max(self.idf.values(), default=0.0), examples, batch),
        }
        unseen = sum(self.types.values()) / max(1, len(self.types))
        return found | ({TYPE: _looked_up(self.types, unseen, examples, batch)} if judging else {})


def inverse_frequency(task: Task, examples: Sequence[Example]) -> dict[str, float]:
    """log N / df of every word."""
    texts = task.splits.get("train", ()) or examples
    counts = Counter(word for text in texts for word in set(text.words))
    return {word: math.log(len(texts) / count) for word, count in counts.items()}


def mean_effects(found: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean size of what every word did."""
    sizes: dict[str, list[float]] = {}
    for word, effect in found:
        sizes.setdefault(word, []).append(abs(effect))
    return {word: sum(own) / len(own) for word, own in sizes.items()}


def _looked_up(table: Mapping[str, float], unknown: float, examples: Sequence[Example], batch: Batch) -> Tensor:
    """A number for every word of every text, at its token: [text, token], NaN elsewhere."""
    found = torch.full(batch.tokens.shape, torch.nan, dtype=torch.float64, device=batch.words.device)
    values = [table.get(word, unknown) for text in examples for word in text.words]
    found[batch.words] = torch.tensor(values, dtype=torch.float64, device=found.device)
    return found
