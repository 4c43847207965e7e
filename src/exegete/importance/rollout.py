"""Rollout: attention followed down through the layers to the words (Abnar & Zuidema 2020, section 3).

    Ã_l = ½ (mean over heads of A_l + I), rows renormalised          the residual carries a token on as it is
    s = α Ã_L ⋯ Ã_2 Ã_1

α is the last row: the weights of the attention that pools. Where nothing pools it is what is read of the last layer: 1
at its first or last token, or the same at all tokens. A_l ij is what token i of layer l takes from token j below it, so
s_t is the share of what is pooled that comes from word t if everything mixes linearly. It is no derivative: the values,
the feed-forward layers and the class don't occur in it. Start and end symbols take part and get no score, so the words
of a text share 1 only where there are none.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.importance.contract import Scores, Target, cost, on_words, predicted
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor, Trace
from exegete.tasks.batching import Batch


class Graph(NamedTuple):
    """Tokens in layers: how much each takes from those below, in float64."""

    layers: list[Tensor]  # [batch, token, token] each, from the words up: Ã_l; a row of padding is its own
    pool: Tensor  # [batch, token]: α, or what is read of the last layer


@dataclass(frozen=True)
class Rollout:
    """The product of all layers' weights, with the residual in each, from the pool down to the words."""

    family: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    def refuses(self, model: Predictor) -> str | None:
        """Only where layers of self-attention are pooled is there something to follow."""
        return without_layers("rollout", model)

    def __call__(self, model: Predictor, batch: Batch, target: Target | None = None) -> Scores:
        """One forward pass; the scores are the same for every class."""
        if (reason := self.refuses(model)) is not None:
            raise UsageError(reason)
        with torch.no_grad():
            trace = model.trace(batch)
        row = follow_down(graph(model, trace))
        target = target or predicted(trace.logits)
        return Scores(on_words(row, batch), signed=self.signed, target=target, cost=cost(batch, forward=1))


def without_layers(name: str, model: Predictor) -> str | None:
    """Why attention can't be followed through a model, as a sentence; None if it can."""
    if not isinstance(model, SelfAttentive) or not model.self_attention:
        kind = type(model).__name__
        return f"{name} follows attention through layers of self-attention, and {kind} has none: use it on transformer"
    if len(model.sites) > len(model.self_attention) + 1:
        return f"{name} ends in one attention that pools the tokens, and {type(model).__name__} has other ones too"
    return None


def graph(model: Predictor, trace: Trace) -> Graph:
    """The weights of a trace as shares."""
    assert isinstance(model, SelfAttentive)
    layers = [with_residual(trace.attention[site].double().mean(1)) for site in model.self_attention]
    return Graph(layers, readout_shares(model, trace))


def readout_shares(model: Predictor, trace: Trace) -> Tensor:
    """How much of what is read of the last layer each of its tokens is, float64 [batch, token]."""
    weights = trace.attention[model.sites[-1]]
    read = isinstance(model, SelfAttentive) and model.sites[-1] in model.self_attention
    return row_shares(_read(model, weights) if read else weights[:, 0, 0].double())


def follow_down(whole: Graph) -> Tensor:
    """α Ã_L ⋯ Ã_1, [batch, token]."""
    row = whole.pool
    for layer in reversed(whole.layers):
        row = (row[:, None] @ layer)[:, 0]
    return row


def _read(model: Predictor, weights: Tensor) -> Tensor:
    """1.0 on the tokens of the last layer that a prediction is read from, float64 [batch, token]."""
    assert model.readout is not None
    looking = (weights > 0).any(-1).any(1)  # [batch, token]
    if model.readout.query in ("first", "last"):
        return torch.nn.functional.one_hot(model.readout.place(looking), looking.shape[1]).double()
    return looking.double()


def with_residual(weights: Tensor) -> Tensor:
    """½ (A + I), rows renormalised: rows of `gates`, and of padding, don't sum to 1 by themselves."""
    return row_shares(weights + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device))


def row_shares(rows: Tensor) -> Tensor:
    """Rows that sum to 1; one without anything stays so."""
    total = rows.sum(-1, keepdim=True)
    return rows / torch.where(total > 0, total, 1.0)
