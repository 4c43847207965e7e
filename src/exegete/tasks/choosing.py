"""Choosing: a part of many texts where asking about all would take too long, the same in every process."""

from collections.abc import Sequence

import torch

from exegete.base.noise import stable_seed, uniform
from exegete.tasks.example import Example


def chosen(examples: Sequence[Example], texts: int | None) -> tuple[Example, ...]:
    """A keyed choice of so many texts, the same for every model; in their own order. A smaller one is part of it."""
    if texts is None or texts >= len(examples):
        return tuple(examples)
    drawn = uniform(stable_seed("texts"), torch.tensor([e.id for e in examples])).argsort()[:texts]
    return tuple(examples[i] for i in sorted(drawn.tolist()))
