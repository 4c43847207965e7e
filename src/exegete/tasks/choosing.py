"""Choosing: a part of many texts where asking about all would take too long, the same in every process."""

from collections.abc import Sequence

import torch

from exegete.base.noise import stable_seed, uniform
from exegete.tasks.example import Example
from exegete.tasks.stored import ids_of, some_of


def chosen(examples: Sequence[Example], texts: int | None) -> Sequence[Example]:
    """A keyed choice of so many texts, the same for every model; in their own order. A smaller one is part of it."""
    if texts is None or texts >= len(examples):
        return examples
    drawn = uniform(stable_seed("texts"), torch.from_numpy(ids_of(examples))).argsort()[:texts]
    return some_of(examples, drawn.sort().values.numpy())
