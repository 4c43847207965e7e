"""Comparison of methods on a text: how far do they rank words alike, and what does deleting their first words do?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from statistics import median
from typing import Literal

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.measures.faithfulness import comprehensiveness, flips, without_first, word_order
from exegete.measures.rank import tau
from exegete.models.contract import Predictor
from exegete.tasks.batching import Batch

ORDERS = 20  # random orders of deletion
AT_ONCE = 2  # words more that are deleted before anybody looks: asking of one short text takes as long as running it
NEVER = float("inf")
Compared = Literal["score", "magnitude"]


@dataclass(frozen=True)
class MethodAgreement:
    """Kendall's τ-b of every pair of methods: of scores if both are signed, of their sizes otherwise."""

    names: tuple[str, ...]
    tau: tuple[tuple[float | None, ...], ...]  # None where it is undefined: one word, or all scores equal
    by: tuple[tuple[Compared, ...], ...]

    def between(self, first: str, second: str) -> float | None:
        """τ-b of two methods."""
        return self.tau[self.names.index(first)][self.names.index(second)]


def method_agreement(values: Mapping[str, Tensor], signed: Mapping[str, bool]) -> MethodAgreement:
    """Compare every pair of methods on one text: [word] each."""
    names = tuple(values)
    pairs = list(combinations_with_replacement(names, 2))
    found = dict(zip(pairs, taus([_pair(values, signed, pair) for pair in pairs]), strict=True))

    return MethodAgreement(
        names,
        tuple(tuple(found[(a, b) if (a, b) in found else (b, a)] for b in names) for a in names),
        tuple(tuple("score" if signed[a] and signed[b] else "magnitude" for b in names) for a in names),
    )


def _pair(values: Mapping[str, Tensor], signed: Mapping[str, bool], pair: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Two methods in the form in which they can be compared."""
    first, second = (values[name] for name in pair)
    return (first, second) if all(signed[name] for name in pair) else (first.abs(), second.abs())


def taus(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[float | None]:
    """τ-b of every pair of [word] scores; None where it is undefined."""
    if not pairs:
        return []
    first, second = (torch.stack(side) for side in zip(*pairs, strict=True))
    return [None if value != value else value for value in tau(first, second).tolist()]


@dataclass(frozen=True)
class Removals:
    """What deleting the first words of each method does to one prediction."""

    comprehensiveness: Mapping[str, float]  # by method: mean loss of the class's probability (AOPC)
    flip: Mapping[str, int | None]  # by method: words deleted when another class wins; None: never
    random: float | None  # the median over random orders; None: never
    constant: bool  # no deletion by a method changed any logit


def compare_removals(
    model: Predictor, batch: Batch, whole: Tensor, label: Tensor, values: Mapping[str, Tensor]
) -> Removals:
    """Delete the first words of every method, and of random orders, from the one text of a batch.

    `whole` has the logits of the text as it is, [text, class].
    """
    n = int(batch.lengths[0])
    noise = uniform(stable_seed("reading"), batch.ids, torch.arange(ORDERS)[:, None], torch.arange(n))
    ranked = torch.cat([torch.stack([*values.values()]), noise])[:, None]  # [order, text, word]
    orders = word_order(ranked, batch.ids)
    flipped = flips(model, batch, orders, whole.argmax(-1), "delete", partial(_settled, of=len(values)), AT_ONCE)
    without = without_first(model, batch, orders[: len(values)], "delete")  # [order, text, fraction, class]
    lost = comprehensiveness(whole, without, label)[:, 0].tolist()
    counts = [None if never else round(n * share) for share, never in zip(*_lists(flipped), strict=True)]
    middle = median(NEVER if count is None else count for count in counts[len(values) :])
    return Removals(
        comprehensiveness=dict(zip(values, lost, strict=True)),
        flip=dict(zip(values, counts, strict=False)),
        random=None if middle == NEVER else middle,
        constant=bool((without - whole[:, None]).abs().max() <= 1e-9 * whole.abs().max().clamp(min=1)),
    )


def _settled(found: Tensor, of: int) -> Tensor:
    """Whose flips need not be looked for: where more than half of the random orders flipped, their median is known."""
    known = (found[of:] > 0).sum(0) > ORDERS // 2
    return (torch.arange(len(found)) >= of)[:, None] & known


def _lists(flipped: tuple[Tensor, Tensor]) -> tuple[list[float], list[bool]]:
    return flipped[0][:, 0].tolist(), flipped[1][:, 0].tolist()
