"""Pruning: heads taken away, the least important first, without any training (Michel et al. 2019, section 4, figure 3).

The importance of a head is the expected sensitivity of the loss to its mask (section 4.1),

    I_h = E_x |∂L(x) / ∂ξ_h|,   ξ_h = 1 multiplying all that the head gives,

divided by the ℓ2 norm over the heads of its layer. A share of all heads goes at each step, and I is asked anew of what
is left. The order is found on other texts than those that are counted.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exegete.base.noise import stable_seed, uniform
from exegete.experiments.common.contract import Subject
from exegete.interventions.restriction import AtHeads
from exegete.interventions.silence import Silence
from exegete.interventions.sites import Head
from exegete.models.capabilities import SelfAttentive
from exegete.models.contract import Predictor, Site
from exegete.tasks.example import Example
from exegete.tasks.selection import choose_texts
from exegete.training.evaluation import prediction_passes

BY_SENSITIVITY, BY_CHANCE = "sensitivity", "random"


class Step(NamedTuple):
    """Some heads are gone."""

    order: str  # by what they were chosen
    draw: int  # which of several random orders
    gone: tuple[Head, ...]


def all_heads(model: Predictor, example: Example) -> tuple[Head, ...]:
    """Every head of every layer of self-attention, from the words up: one text shows how many there are."""
    assert isinstance(model, SelfAttentive)
    with torch.no_grad():
        seen = model.trace(model.collate([example]), keep=model.self_attention).attention
    return tuple(Head(site, head) for site in model.self_attention for head in range(seen[site].shape[1]))


def silence_heads(heads: Sequence[Head]) -> AtHeads:
    """Some heads that give nothing."""
    return AtHeads(tuple(heads), Silence())


def slopes(model: Predictor, examples: Sequence[Example], heads: Sequence[Head], gone: Sequence[Head] = ()) -> Tensor:
    """∂L/∂ξ_h of every text and head, L = −log p of its gold class, with some heads gone: [example, head], float64."""
    sites = dict.fromkeys(head.site for head in heads)
    order: list[int] = []
    found = [torch.zeros(0, len(heads), dtype=torch.float64)]
    for members in prediction_passes(model, examples):
        batch = model.collate([examples[i] for i in members])
        masks: dict[str, Tensor] = {}

        def masked(site: Site, masks: dict[str, Tensor] = masks) -> Tensor:
            if site.name not in sites:
                return site.weights
            weights = silence_heads(gone)(site)
            masks[site.name] = torch.ones_like(weights[:, :, 0, 0], requires_grad=True)  # [batch, head]
            return weights * masks[site.name][..., None, None]

        with torch.enable_grad():
            loss = cross_entropy(model.logits(batch, intervene=masked), batch.label, reduction="sum")
            slope = dict(zip(masks, torch.autograd.grad(loss, list(masks.values())), strict=True))
        found.append(torch.stack([slope[each.site][:, each.head] for each in heads], -1).double().cpu())
        order += members
    return torch.cat(found)[torch.tensor(order, dtype=torch.int64).argsort()]


def normalise_heads(importance: Tensor, heads: Sequence[Head]) -> Tensor:
    """The importance of heads [head] divided by its ℓ2 norm over the heads of a layer; of a layer of zeros, 0."""
    found = importance.clone()
    for site in dict.fromkeys(head.site for head in heads):
        own = torch.tensor([head.site == site for head in heads])
        norm = importance[own].norm()
        found[own] = importance[own] / norm.where(norm > 0, 1.0)
    return found


def stairs(count: int, steps: int) -> list[int]:
    """How many heads are gone after each step, of so many in all; the last step leaves none.

    >>> stairs(12, 5)
    [2, 5, 7, 10, 12]
    """
    return sorted({round(count * step / steps + 1e-9) for step in range(1, steps + 1)} - {0})


def by_sensitivity(
    model: Predictor, examples: Sequence[Example], heads: Sequence[Head], sizes: Sequence[int]
) -> Iterator[Step]:
    """The least important of the heads that are left go first."""
    gone: tuple[Head, ...] = ()
    for size in sizes:
        left = [head for head in heads if head not in gone]
        importance = slopes(model, examples, left, gone).abs().mean(0)
        rank = normalise_heads(importance, left).argsort(stable=True).tolist()
        gone = (*gone, *(left[place] for place in rank[: size - len(gone)]))
        yield Step(BY_SENSITIVITY, 0, gone)


def by_chance(heads: Sequence[Head], sizes: Sequence[int], seed: int, draws: int) -> Iterator[Step]:
    """Random orders: what pruning without knowing anything would leave."""
    for draw in range(draws):
        order = uniform(stable_seed("pruning", seed), draw, torch.arange(len(heads))).argsort().tolist()
        yield from (Step(BY_CHANCE, draw, tuple(heads[place] for place in order[:size])) for size in sizes)


def other_texts(subject: Subject, count: int) -> tuple[Example, ...]:
    """Labelled texts of another split than the one that is asked about: dev, or else train."""
    splits = subject.task.splits
    other = next(name for name in ("dev", "train", *splits) if name in splits and name != subject.split)
    return tuple(choose_texts(splits[other], count))
