"""Table: weights that were stored by text, to be imposed on another model.

A row is found by the words of its text, as the model that gets the weights sees them: ids are only unique in a split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exegete.models.classifier import Classifier
from exegete.models.contract import Intervention
from exegete.tasks.batching import Batch, batches_of_one_length, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary

Words = tuple[int, ...]  # a text as rows of a vocabulary


@dataclass(frozen=True, eq=False)
class Table:
    """Weights by text."""

    rows: Mapping[Words, Tensor]  # [word]

    def __repr__(self) -> str:
        return f"Table({len(self.rows)} texts)"

    @classmethod
    def of(
        cls,
        model: Classifier,
        examples: Sequence[Example],
        vocabulary: Vocabulary,
        intervene: Intervention | None = None,
    ) -> "Table":
        """The weights of a model's last attention on some texts, for a model with this vocabulary."""
        rows: dict[Words, Tensor] = {}
        for members in batches_of_one_length(examples, size=512, budget=32_768):
            some = [examples[i] for i in members]
            batch = collate(some, model.vocabulary)
            with torch.no_grad():
                weights = model.trace(batch, intervene=intervene).attention[model.sites[-1]][:, 0, 0]
            for example, row, words in zip(some, weights, batch.words, strict=True):
                rows[tuple(vocabulary.rows(example.words))] = row[words]
        return cls(rows)


def words_of(batch: Batch) -> list[Words]:
    """The words of every text of a batch."""
    return [tuple(tokens[words].tolist()) for tokens, words in zip(batch.tokens, batch.words, strict=True)]
