"""Importance sets over a test set: four rankings by cumulative sums against the literature's loop, in one thread."""

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from common import below, seconds, task, trained
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.importance_sets.experiment import ImportanceSets, Scheme, first_flips
from exegete.models.ours.classifier import Classifier
from exegete.tasks.example import Example

BAR = 10.0
SCHEMES: tuple[Scheme, ...] = ("attention", "gradient", "gradient_x_attention", "random")
ORDERS = 5  # random ones, as many as the paper draws
Found = dict[int, Tensor]  # by text: the fraction removed at the first flip, [order]


class Encoding:
    """A batch of 32 as the literature's code holds it: padded states, weights, mask."""

    def __init__(self, model: Classifier, examples: Sequence[Example], members: list[int]) -> None:
        batch = model.collate([examples[i] for i in members])
        with torch.no_grad():
            encoded = model.encode(batch)
            self.weights = model.project(encoded.scores, encoded.mask)  # [batch, key]
        self.states, self.mask, self.members = encoded.states, encoded.mask, members

    def decode(self, model: Classifier, weights: Tensor) -> Tensor:
        """c = Σ α_t h_t, logits = W c + b."""
        context = (weights[..., None] * self.states).sum(1)  # [batch, size]
        return model.two_sided(model.decoder(context))


def in_batches(model: Classifier, examples: Sequence[Example]) -> list[Encoding]:
    order = sorted(range(len(examples)), key=lambda i: len(examples[i]))
    return [Encoding(model, examples, order[start : start + 32]) for start in range(0, len(order), 32)]


def literature(model: Classifier, batches: Sequence[Encoding], random: Found) -> Found:
    """Gradients by autograd; then, ranking by ranking, remove one more key, renormalise, decode, compare."""
    found: Found = {}
    for batch in batches:
        columns = [_until_flip(model, batch, scores) for scores in _scores(model, batch, random)]
        fractions = torch.stack(columns, 1)
        found |= {i: fractions[row] for row, i in enumerate(batch.members)}
    return found


def _scores(model: Classifier, batch: Encoding, random: Found) -> list[Tensor]:
    """What each ranking sorts by, [batch, key]; random orders are given, so that both sides have the same."""
    weights = batch.weights.clone().requires_grad_()
    p = batch.decode(model, weights).softmax(-1)
    (gradient,) = torch.autograd.grad(p.max(-1).values.sum(), weights)
    shuffled = torch.full((len(batch.members), ORDERS, weights.shape[1]), -1.0, dtype=torch.float64)
    for row, i in enumerate(batch.members):
        shuffled[row, :, : random[i].shape[1]] = random[i]
    return [batch.weights, gradient, gradient * batch.weights, *shuffled.unbind(1)]


@torch.no_grad()
def _until_flip(model: Classifier, batch: Encoding, scores: Tensor) -> Tensor:
    """The fraction removed when the decision first differs; 1 if it never does."""
    order = scores.masked_fill(~batch.mask, -torch.inf).argsort(-1, descending=True)
    before, keys = batch.decode(model, batch.weights).argmax(-1), batch.mask.sum(-1)
    found = torch.ones(len(order), dtype=torch.float64)
    waiting = torch.ones(len(order), dtype=torch.bool)
    weights = batch.weights.clone()
    for j in range(order.shape[1]):
        weights.scatter_(1, order[:, j : j + 1], 0)
        mass = weights.sum(-1, keepdim=True)
        logits = batch.decode(model, weights / mass.where(mass > 0, 1))
        flipped = waiting & (logits.argmax(-1) != before) & (j < keys)
        found[flipped] = (j + 1) / keys[flipped].double()
        waiting &= ~flipped
        if not waiting.any():
            break
    return found


def ours(asked: ImportanceSets, parts: Sequence[Pooled]) -> Found:
    found: Found = {}
    for part in parts:
        fractions = first_flips(part, torch.cat(list(asked.ordered(part).values()), 1)).fraction
        found |= {i: fractions[row] for row, i in enumerate(part.members)}
    return found


def random_scores(asked: ImportanceSets, parts: Sequence[Pooled]) -> Found:
    """Scores that give the literature's side our random orders, [order, key]."""
    found: Found = {}
    for part in parts:
        rank = asked.ordered(part)["random"].argsort(-1)  # when a key goes
        found |= {i: -rank[row].double() for row, i in enumerate(part.members)}
    return found


def main() -> None:
    data = task()
    model, examples = trained(data), data.split("test")
    asked = ImportanceSets(SCHEMES, orders=ORDERS)
    parts, batches = list(open_pooled(model, examples)), in_batches(model, examples)
    random = random_scores(asked, parts)
    a, b = ours(asked, parts), literature(model, batches, random)
    same = torch.stack([(a[i] - b[i]).abs() < 1e-9 for i in a]).double().mean().item()
    apart = (torch.stack([a[i] for i in a]).mean(0) - torch.stack([b[i] for i in a]).mean(0)).abs().max().item()
    fast = seconds(lambda: ours(asked, parts), 5)
    slow = seconds(lambda: literature(model, batches, random), 2)
    encode = seconds(lambda: list(open_pooled(model, examples)), 2)
    padded = seconds(lambda: in_batches(model, examples), 2)
    whole = (slow + padded) / (fast + encode)
    print(f"importance sets, {data.name} test ({len(examples):,} texts), four rankings, {ORDERS} random orders")
    print(f"  literature        {slow:7.3f} s   (and {padded:.2f} s for encoding)")
    print(f"  exegete           {fast:7.3f} s   (and {encode:.2f} s)   {slow / fast:5.1f}x  (bar {BAR:.0f}x)")
    print(
        f"  encoding included {whole:.1f}x; the same fraction in {100 * same:.2f} %, means apart by at most {apart:.1e}"
    )
    if same < 0.999 or below(slow / fast, BAR):
        sys.exit("importance sets: below the bar, or different results")


if __name__ == "__main__":
    main()
