"""Idle heads: those whose weights could be any, since nothing that is predicted hangs on which word has which of them.

A reading that joins heads or layers can owe its order to some that nobody reads, and its M to others: cutting all of
its edges takes both away. So the weights of a head are made flat, each word of a row with the same share of what words
have there, and the predicted class moves by Δ. By the texts on which readings are chosen,

    moved = √(Σ Δ² / Σ e_t²),                                           over texts; e over their words, too

Heads are taken in the order of what each would move alone, by the slope of the log-odds along the way to flat weights,
and as many as can be flat together and move less than 0.05 (what `mediation` calls doing nothing) are unread: so many
are found by halving. A reading is asked for its order without them, too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.experiments.mediation.experiment import UNREAD
from exegete.interventions.restriction import AtHeads
from exegete.interventions.sites import Head
from exegete.measures.divergence import class_log_odds
from exegete.models.contract import Predictor, Site
from exegete.tasks.batching import Batch


class TextEffects(NamedTuple):
    """Some texts, the class of each, and what their words do to it."""

    batch: Batch
    label: Tensor  # [text]
    removed: Tensor  # [text, token], log-odds; NaN where nothing was asked


@dataclass(frozen=True)
class Flat:
    """Every word of a row gets the same, and all of them together what they had; symbols keep theirs."""

    model: Predictor
    one: bool  # only the row of the token that is read

    def __call__(self, site: Site) -> Tensor:
        """The site's weights, flat."""
        words = site.batch.words[:, None, None] & site.mask  # [batch, head or 1, query, key]
        mass = (site.weights * words).sum(-1, keepdim=True) / words.sum(-1, keepdim=True).clamp(min=1)
        flat = torch.where(words, mass, site.weights)
        return torch.where(self._rows(site), flat, site.weights)

    def _rows(self, site: Site) -> Tensor:
        """Which queries, [batch, 1, query or 1, 1]."""
        if not self.one or site.weights.shape[2] == 1:
            return torch.ones(1, 1, 1, 1, dtype=torch.bool, device=site.weights.device)
        assert self.model.readout is not None
        return self.model.readout.reads(site)[:, None, :, None]


def find_idle_heads(model: Predictor, some: Sequence[TextEffects], heads: Sequence[Head], one: bool) -> frozenset[Head]:
    """The heads that nobody reads, by their rows of the token that is read, or by all of their rows."""
    moving = Moving(model, some, one)
    slope = moving.slopes()
    order = sorted(heads, key=lambda head: slope[head])
    low, high = 0, len(order)  # the first `low` move nothing
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if moving.by(order[:middle]) < UNREAD else (low, middle - 1)
    return frozenset(order[:low])


class Moving:
    """How far the predictions of some texts move with heads made flat."""

    def __init__(self, model: Predictor, some: Sequence[TextEffects], one: bool) -> None:
        self.model, self.some, self.flat = model, some, Flat(model, one)
        self.effect = sum(float(asked.removed.square().nansum()) for asked in some)

    @torch.no_grad()
    def by(self, heads: Sequence[Head]) -> float:
        """With some heads flat, of what words do."""
        flat, change = AtHeads(tuple(heads), self.flat), 0.0
        for batch, label, _ in self.some:
            own, moved = (class_log_odds(self.model.logits(batch, intervene=i), label) for i in (None, flat))
            change += float((moved - own).square().sum())
        return (change / self.effect) ** 0.5 if self.effect else 0.0

    def slopes(self) -> dict[Head, float]:
        """By head, the squared first-order change over all texts: Σ (∂ log-odds / ∂α · (flat − α))²."""
        found: Counter[Head] = Counter()
        for batch, label, _ in self.some:
            for site, change in self._changes(batch, label).items():
                for head, moved in enumerate(change.square().sum(0).tolist()):
                    found[Head(site, head)] += moved
        return dict(found)

    @torch.enable_grad()
    def _changes(self, batch: Batch, label: Tensor) -> dict[str, Tensor]:
        """By site: [text, head]."""
        met: dict[str, tuple[Tensor, Tensor]] = {}

        def watch(site: Site) -> Tensor:
            own = site.weights if site.weights.requires_grad else site.weights.clone().requires_grad_()
            met[site.name] = (own * 1, self.flat(site).detach())  # another tensor: the very same may go by unseen
            return met[site.name][0]

        value = class_log_odds(self.model.logits(batch, intervene=watch), label).sum()
        slopes = torch.autograd.grad(value, [own for own, _ in met.values()])
        changes = zip(met.items(), slopes, strict=True)
        return {site: (slope * (flat - own)).detach().sum((-1, -2)).cpu() for (site, (own, flat)), slope in changes}
