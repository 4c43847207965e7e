"""A model whose Shapley values are known by hand: every word has a value, and a pair of words may add a bonus."""

from collections.abc import Collection

import torch
from torch import Tensor

from exegete.models.contract import Intervention, Trace
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import Vocabulary
from tests.toy import Toy


class Additive(Toy):
    """Logit of class 1: the values of the words that are there, and `bonus` if tokens 4 and 5 both are."""

    sites = ("attention",)

    def __init__(self, values: Tensor, bonus: float = 0.0) -> None:
        self.values, self.bonus = values.double(), bonus

    def embed(self, batch: Batch) -> Tensor:
        return torch.nn.functional.one_hot(batch.tokens, len(self.values)).double()

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        assert intervene is None
        del keep
        bag = ((self.embed(batch) if embedded is None else embedded) * batch.words[..., None]).sum(1)  # [batch, token]
        logit = bag @ self.values + self.bonus * (bag[:, 4] > 0) * (bag[:, 5] > 0)
        return Trace(torch.stack([-logit, logit], -1), {}, {}, {})


def batch_of_ids(rows: list[list[int]], ids: list[int] | None = None) -> Batch:
    """Texts of one length, as tokens."""
    tokens = torch.tensor(rows)
    everywhere = torch.ones_like(tokens).bool()
    nowhere = torch.zeros_like(tokens)
    numbers = torch.tensor(ids or range(len(rows)))
    return Batch(
        numbers,
        tokens,
        everywhere,
        everywhere,
        nowhere,
        nowhere,
        torch.zeros(len(rows), dtype=torch.int64),
        Vocabulary(()),
    )
