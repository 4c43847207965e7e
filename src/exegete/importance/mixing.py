"""Mixing: layer by layer, what the states of a text have from the words below, and followed down to the words.

A method says where a layer is taken apart (`capabilities.Apart`) and how a state with and without a word is compared:
this gives a matrix per layer, C_l ij, what state i of layer l has from word j below it. Rows are shares of 1. Residuals
are in them already, so that nothing is added; then, as in rollout (Abnar & Zuidema 2020),

    s = α C_L ⋯ C_1

with α as `rollout` has it: what is read of the last layer. A word of several pieces is left out whole, and its row is
the mean over its pieces; start and end symbols take part and get no score.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.importance.rollout import Graph, follow_down, readout_shares, row_shares, without_layers
from exegete.models.contract import Predictor
from exegete.models.separable import Apart, Copies, Separable
from exegete.tasks.batching import Batch


class Way(NamedTuple):
    """How a method takes layers apart."""

    name: str
    at: Apart
    compare: Callable[[Copies], Tensor]  # [word, piece]


class Taken(NamedTuple):
    """What was found, and in how many passes."""

    graph: Graph
    logits: Tensor  # [batch, class]
    passes: Tensor  # [batch]


def unseparated(way: Way, model: Predictor) -> str | None:
    """Why a model's layers can't be taken apart, as a sentence; None if they can."""
    if not isinstance(model, Separable):
        return f"{way.name} takes the layers of a model apart, and {type(model).__name__} has no way to: use it on hf"
    if (reason := without_layers(way.name, model)) is not None:
        return reason
    reason = model.inseparable(way.at)
    return reason and f"{way.name} can't take apart a model {reason}: use it on one such as BERT, or use leave_one_out"


def separate_layers(way: Way, model: Predictor, batch: Batch) -> Taken:
    """Every layer as shares, and what is read of the last."""
    if (reason := unseparated(way, model)) is not None:
        raise UsageError(reason)
    assert isinstance(model, Separable)
    with torch.no_grad():
        trace = model.trace(batch, keep=model.sites[-1:])
        layers, passes = model.apart(batch, way.at, way.compare)
    return Taken(Graph(list(layers), readout_shares(model, trace)), trace.logits, passes + 1)


@dataclass(frozen=True)
class Mixing:
    """A method that takes layers apart in its way, and follows them from what is read down to the words."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False
    way: ClassVar[Way]

    def refuses(self, model: Predictor) -> str | None:
        """Only where layers can be taken apart in this way."""
        return unseparated(self.way, model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """As many passes as a text has words, of which each serves all layers; the same for every class."""
        found = separate_layers(self.way, model, batch)
        row = follow_down(found.graph._replace(layers=list(map(row_shares, found.graph.layers))))
        target = target or predicted(found.logits)
        return Scores(on_words(row, batch), signed=self.signed, target=target, cost=cost(batch, forward=found.passes))
