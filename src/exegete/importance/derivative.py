"""Derivative: how fast a prediction moves with every token's embedding; the step that all gradient methods share."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.importance.contract import Quantity, Target, explained, predicted
from exegete.interventions.detach import Detach
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

TOKENS = 2048  # tokens that one pass holds: enough for fast products, few enough for the cache


class Derivative(NamedTuple):
    """∂f_c/∂x at some embeddings x, and what was found on the way."""

    gradient: Tensor  # [batch, token, size]
    embedded: Tensor  # [batch, token, size]
    target: Target
    logits: Tensor  # [batch, class]


def support(logits: Tensor, target: Target) -> Tensor:
    """f_c(x) with a sign: more of it speaks for the class. Logit or probability as they are, loss with a minus."""
    value = explained(logits, target)
    return -value if target.of == "loss" else value  # [batch]


def chosen(logits: Tensor, batch: Batch, of: Quantity) -> Target:
    """What is explained where nobody said: the predicted class; for the loss, the gold label (Neely & Schouten)."""
    return Target(batch.label, of="loss") if of == "loss" else predicted(logits, of)


def derivative(
    model: Predictor,
    batch: Batch,
    target: Target | Quantity = "logit",
    *,
    detach: bool = False,
    embedded: Tensor | None = None,
) -> Derivative:
    """∂ support / ∂ embedding by one forward and one backward pass; without a target, of what the model predicts.

    `embedded` derives elsewhere than at the text's own embeddings; `detach` takes attention weights for constants.
    """
    embedded = (model.embed(batch) if embedded is None else embedded).detach().requires_grad_()
    logits = model.logits(batch, embedded=embedded, intervene=Detach() if detach else None)
    if isinstance(target, str):
        target = chosen(logits, batch, target)
    # In float64, so that a probability near 1 keeps its distance from it: p (1 − p) is not rounded to 0.
    (gradient,) = torch.autograd.grad(support(logits.double(), target).sum(), embedded)
    return Derivative(gradient, embedded.detach(), target, logits.detach())


def passes(batch: Batch, rows: Tensor) -> Iterator[tuple[Tensor, Batch]]:
    """Cut many copies of texts into passes of one width and few tokens: which asks, and the texts rows[asks].

    So memory is bounded, recurrent encoders need no packing, and a text runs the same whatever stands beside it.
    """
    ends = (batch.present * torch.arange(1, 1 + batch.tokens.shape[1], device=rows.device)).amax(-1)[rows]  # [ask]
    costs = batch.cost.sum(-1)[rows]
    for end in ends.unique().tolist():
        width = max(1, end)
        alike = (ends == end).nonzero()[:, 0]
        for asks in alike.split(max(1, TOKENS // max(width, int(costs[alike].max())))):
            yield asks, batch.rows(rows[asks], width)
