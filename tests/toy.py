"""A model by hand: `embed` and `trace` are enough, and the rest of the contract follows from them."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from exegete.models.contract import Intervention, Readout, ReplacedBy, Trace
from exegete.tasks.batching import Batch, collate
from exegete.tasks.example import Example
from exegete.tasks.vocabulary import Vocabulary


class Toy:
    """A predictor of two classes without a vocabulary: its batches are made by hand."""

    spec, labels, device = "toy", ("no", "yes"), torch.device("cpu")
    sites: tuple[str, ...] = ()
    readout: Readout | None = None
    reader = Vocabulary(())

    def fingerprint(self) -> str:
        return "toy"

    def collate(self, examples: Sequence[Example]) -> Batch:
        return collate(examples, self.reader)

    def embed(self, batch: Batch) -> Tensor:
        raise NotImplementedError

    def replaced(self, batch: Batch, words: Tensor, by: ReplacedBy) -> Tensor:
        assert by == "zero", f"a toy has no {by} word"
        return self.embed(batch).masked_fill(words[..., None], 0.0)

    def logits(self, batch: Batch, *, embedded: Tensor | None = None, intervene: Intervention | None = None) -> Tensor:
        return self.trace(batch, embedded=embedded, intervene=intervene, keep=()).logits

    def trace(
        self,
        batch: Batch,
        *,
        embedded: Tensor | None = None,
        intervene: Intervention | None = None,
        keep: Collection[str] | None = None,
    ) -> Trace:
        raise NotImplementedError
