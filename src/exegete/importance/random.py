"""Random: scores that know nothing, the level that every other importance must beat."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from exegete.base.noise import uniform
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch


@dataclass(frozen=True)
class RandomImportance:
    """Uniform numbers keyed by example and word: the same in any batch."""

    family: ClassVar[str] = "random"

    seed: int = 0

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """Draw; the model is asked only which class it predicts."""
        with torch.no_grad():
            target = target or predicted(model.trace(batch).logits)
        word = batch.words.cumsum(-1) - 1  # its place among the words, whatever wrappers and padding are around
        values = on_words(uniform(self.seed, batch.ids[:, None], word), batch)
        return Scores(values, signed=False, target=target, cost=cost(batch))
