"""Derivative: how fast a prediction moves with every token's embedding; the step that all gradient methods share."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.importance.contract import Quantity, Target, explained, predicted
from exegete.importance.sharing import shared_store
from exegete.interventions.detach import Detach
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

KEPT = "derivative"
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


def default_target(logits: Tensor, batch: Batch, of: Quantity) -> Target:
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
    Inside `sharing()`, the last one at a text's own embeddings is kept for whoever asks next.
    """
    found = shared_store(model) if embedded is None else None
    if found is None:
        return _derivative(model, batch, target, detach, embedded)
    asked = (batch, target, detach)
    if KEPT not in found or not _same(found[KEPT][0], asked):
        found[KEPT] = (asked, _derivative(model, batch, target, detach, None))
    derived: Derivative = found[KEPT][1]
    return derived


_Asked = tuple[Batch, Target | Quantity, bool]


def _same(first: _Asked, second: _Asked) -> bool:
    """Whether two questions are of one batch, one target and one function."""
    return first[0] is second[0] and first[2] == second[2] and _alike(first[1], second[1])


def _alike(first: Target | Quantity, second: Target | Quantity) -> bool:
    if isinstance(first, str) or isinstance(second, str):
        return isinstance(first, str) and first == second
    return all(
        torch.equal(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else one == other
        for one, other in zip(first, second, strict=True)
    )


def _derivative(
    model: Predictor, batch: Batch, target: Target | Quantity, detach: bool, embedded: Tensor | None
) -> Derivative:
    embedded = (model.embed(batch) if embedded is None else embedded).detach().requires_grad_()
    logits = model.logits(batch, embedded=embedded, intervene=Detach() if detach else None)
    if isinstance(target, str):
        target = default_target(logits, batch, target)
    # In float64, so that a probability near 1 keeps its distance from it: p (1 − p) is not rounded to 0.
    (gradient,) = torch.autograd.grad(support(logits.double(), target).sum(), embedded)
    return Derivative(gradient, embedded.detach(), target, logits.detach())


def copy_passes(batch: Batch, rows: Tensor) -> Iterator[tuple[Tensor, Batch]]:
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
