"""A sequence classifier of transformers, with its own head: judged as it is, or trained further.

Which query a prediction is read from is found, not known: BERT's classifiers read the first piece, those of language
models the last, others the mean of all. At the last layer, the rows of weights by which the logits have a gradient are
those that are read.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from exegete.base.errors import UsageError
from exegete.models.contract import Query, Readout
from exegete.models.huggingface.labels import class_order
from exegete.models.huggingface.load import LoadedParts
from exegete.models.huggingface.model import HuggingFace, ModelOutput
from exegete.models.huggingface.sites import reading
from exegete.models.huggingface.word_pieces import PROBES
from exegete.models.ours.self_attention import AttentionHook
from exegete.models.own.classifier import resting
from exegete.models.projections import Projection
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example


class OwnHead(HuggingFace):
    """Its own classifier; `order` says where the task's classes are among its own."""

    def __init__(
        self, spec: str, parts: LoadedParts, labels: tuple[str, ...], order: tuple[int, ...], column: int | None = None
    ) -> None:
        super().__init__(spec, parts, labels)
        self.order, self.column = list(order), column
        self._query = self._query_read()

    @property
    def as_it_is(self) -> bool:
        """Unless it is to be trained further."""
        return not self.settings.tune

    @property
    def query(self) -> Query:
        """That by whose weights the logits have a gradient."""
        return self._query

    @property
    def readout(self) -> Readout:
        """The last layer, as the query sees it that the classifier reads."""
        return Readout(self.sites[-1:], self.query, self.proof.gated)

    def relabelled(self, labels: tuple[str, ...]) -> "OwnHead":
        """The model with its outputs in another order."""
        parts = LoadedParts(self.base, self.tokenizer, self.place)
        order = class_order(self.labels, labels, self.settings.labels, self.who)
        model = OwnHead(self.spec, parts, labels, tuple(self.order[place] for place in order), self.column)
        model.proof = self.proof
        return model.eval()

    def head_parameters(self) -> Iterator[nn.Parameter]:
        """None: its classifier has learnt, too."""
        yield from ()

    def decoded(self, read: ModelOutput, batch: Batch) -> Tensor:
        """Its logits, in the order of our classes; one z for two classes is [−z/2, z/2]."""
        del batch
        logits: Tensor = read.output.logits
        if self.column is not None:
            half = logits[:, self.column] / 2
            logits = torch.stack([-half, half], -1)
        return logits[:, torch.tensor(self.order, device=logits.device)]

    def _query_read(self) -> Query:
        batch = self.collate([Example(0, (tuple(PROBES[0].split()),), 0)])
        free: list[Tensor] = []

        def at(name: str) -> AttentionHook | None:
            def watch(scores: Tensor, weights: Tensor, mask: Tensor, project: Projection) -> Tensor:
                del scores, mask, project
                free.append(weights.detach().requires_grad_())
                return free[-1]

            return watch if name == self.sites[-1] else None

        with resting(self), torch.enable_grad(), reading(self.base, self.access, at, ()):
            logits = _logits(self.base(**self.inputs(self.pieces(batch), batch)), self)
            (slope,) = torch.autograd.grad(logits.double().square().sum(), free)
        rows = slope.abs().sum((0, 1, 3)).nonzero().flatten().tolist()  # queries that are read
        if rows == [0]:
            return "first"
        return "last" if rows == [slope.shape[2] - 1] else "every"


def _logits(output: Any, model: OwnHead) -> Tensor:
    """One row for the probe, or the sentence why what it gives are no classes of a text."""
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise UsageError(
            f"{model.who} gives no logits: its forward must return an output with `logits`, as transformers' "
            "classifiers do; or write an adapter (exegete.OwnModel)"
        )
    classes = 1 + max(model.order) if model.column is None else 1 + model.column
    if logits.dim() != 2 or logits.shape[1] < classes or (model.column is None and logits.shape[1] != classes):
        raise UsageError(
            f"{model.who} gives logits of shape {list(logits.shape)} for one text, and its config names {classes} "
            "classes: set num_labels, id2label and problem_type of its config to what it predicts"
        )
    return logits
