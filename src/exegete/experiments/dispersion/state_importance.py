"""State importance: which hidden states does a prediction hang on? (Meister et al. 2021, equations 4 and 6 on states)

The paper leaves two choices open, so both answers to each are given.

- *Gradient* ‖∂f/∂h_i‖₂ of the predicted class's logit, with α part of the function, or constant. Constant weights make
  it α_i ‖W_c‖ with a linear decoder: a ranking that is α's own, by construction.
- *Leave-one-out*: the prediction without h_i, the other weights renormalised (Serrano & Smith 2019), or the scores
  projected again without it. For softmax both are the same. With no weight left, the decoder's bias decides.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.places import places
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.interventions.detach import Detach
from exegete.models.capabilities import Pooling
from exegete.models.openings import OpenedPooling
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.example import Example

Output = Literal["tvd", "logit"]
WEIGHTS = 1 << 20  # held at a time: texts × removed states × states


class StateImportance(NamedTuple):
    """One number per word's own state, [example, word] each in float64; NaN beyond a text's end."""

    gradient: Tensor
    detached: Tensor  # gradient with constant weights
    renormalised: Tensor  # leave-one-out, the other weights scaled up
    projected: Tensor  # leave-one-out, the other scores projected again


def state_importance(
    model: Pooling, examples: Sequence[Example], predicted: Tensor, of: Output = "tvd"
) -> StateImportance:
    """All of them; `of` is what leave-one-out compares: ½ Σ_y |Δp_y|, or |Δ logit| of the predicted class."""
    width = max((len(e) for e in examples), default=0)
    found = StateImportance(*torch.full((4, len(examples), width), torch.nan, dtype=torch.float64))
    for members in batches_of_one_length(examples, size=256, budget=8192):
        batch = model.collate([examples[i] for i in members])
        for target, detach in ((found.gradient, False), (found.detached, True)):
            put(target, members, by_gradient(model, batch, predicted[members].to(batch.ids.device), detach), batch)
    for some in open_pooled(model, examples):
        batch = model.collate([examples[i] for i in some.members])
        label = predicted[some.members].to(batch.ids.device)
        for target, removed in zip(found[2:], by_removal(some, label, of), strict=True):
            put(target, some.members, removed, batch)
    return found


def put(target: Tensor, members: Sequence[int], values: Tensor, batch: Batch) -> None:
    """Write [text, key] values of texts of one length into their rows of [example, word]; keys begin as tokens do."""
    tokens = torch.nn.functional.pad(values, (0, batch.tokens.shape[1] - values.shape[1]))
    kept = tokens[batch.words].view(len(members), -1).double().cpu()
    target[list(members), : kept.shape[1]] = kept


def by_gradient(model: Pooling, batch: Batch, label: Tensor, detach: bool) -> Tensor:
    """‖∂f_c/∂h_i‖₂ of the class's logit, [text, key]."""
    embedded = model.embed(batch).detach().requires_grad_()
    trace = model.trace(batch, embedded=embedded, intervene=Detach() if detach else None)
    f = trace.logits.gather(-1, label[:, None]).sum()
    (gradient,) = torch.autograd.grad(f, trace.states[model.sites[-1]])
    norms: Tensor = gradient.double().norm(dim=-1)
    return norms


def by_removal(texts: Pooled, label: Tensor, of: Output) -> tuple[Tensor, Tensor]:
    """|Δ output| without every state in turn, [text, key]: weights renormalised, and scores projected again."""
    parts = places(label).split(max(1, WEIGHTS // texts.mask.shape[1] ** 2))
    found = [_removed(texts, rows, label[rows], of) for rows in parts]
    renormalised, projected = (torch.cat(way) for way in zip(*found, strict=True))
    return renormalised, projected


@torch.no_grad()
def _removed(texts: Pooled, rows: Tensor, label: Tensor, of: Output) -> tuple[Tensor, Tensor]:
    assert isinstance(texts.opened, OpenedPooling)  # importances of states are for models that pool them
    model, mask = texts.opened.model, texts.mask[rows]
    encoded = texts.opened.encoded.rows(rows)
    scores = encoded.scores
    weights = model.weigh(scores, mask)  # [text, key]
    others = ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)  # [removed, key]
    left = weights[:, None] * others  # [text, removed, key]
    rest = left.sum(-1, keepdim=True)
    whole_mass = weights.sum(-1)[:, None, None]  # 1; gates, which are no distribution, keep theirs
    renormalised = torch.where(rest > 0, left * whole_mass / rest, 0.0)
    projected = model.weigh(scores[:, None].expand_as(left), mask[:, None] & others)
    whole = model.decode(encoded, weights[:, None])
    changes = (_change(whole, model.decode(encoded, w), label, of) for w in (renormalised, projected))
    # A state without weight takes nothing with it, in either way: exactly 0, so that ties stay ties.
    first, second = (change.where(weights > 0, 0.0) for change in changes)
    return first, second


def _change(whole: Tensor, without: Tensor, label: Tensor, of: Output) -> Tensor:
    """What a removal changes, [text, removed], from logits [text, 1, class] and [text, removed, class]."""
    if of == "tvd":
        return 0.5 * (whole.softmax(-1) - without.softmax(-1)).abs().sum(-1)
    label = label[:, None, None].expand(*without.shape[:2], 1)
    return (whole.expand_as(without).gather(-1, label) - without.gather(-1, label))[..., 0].abs()
