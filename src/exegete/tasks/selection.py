"""Selection: a part of many texts where asking about all would take too long, the same in every process."""

from collections.abc import Iterator, Sequence
from itertools import count, pairwise, takewhile

import torch
from torch import Tensor

from exegete.base.noise import stable_seed, uniform
from exegete.tasks.disk import Places, column_of, some_of
from exegete.tasks.example import Example


def choose_texts(examples: Sequence[Example], texts: int | None) -> Sequence[Example]:
    """A keyed choice of so many texts, the same for every model; in their own order. A smaller one is part of it."""
    if texts is None or texts >= len(examples):
        return examples
    return some_of(examples, keyed_order(column_of(examples, "id"))[:texts].sort().values.numpy())


def keyed_order(ids: Places) -> Tensor:
    """The order in which texts are chosen, as places: [text]."""
    return uniform(stable_seed("texts"), torch.from_numpy(ids.copy())).argsort()


def look_points(texts: int) -> list[int]:
    """How many texts have been asked whenever somebody looks whether it is settled: up to so many, and these.

    >>> look_points(500)
    [50, 75, 100, 150, 200, 300, 400, 500]
    """
    hundreds = takewhile(lambda n: n < texts, count(400, 200))
    return [*(n for n in (50, 75, 100, 150, 200, 300) if n < texts), *hundreds, texts]


def steps(texts: int) -> list[int]:
    """How many texts have been asked after each step that is asked together: looks that are far enough apart.

    >>> steps(500), steps(30)
    ([50, 100, 150, 200, 300, 400, 500], [30])
    """
    return [n for n in look_points(texts) if n != 75 or n == texts]


def in_steps(examples: Sequence[Example], texts: int | None) -> Iterator[Sequence[Example]]:
    """So many texts in their keyed order, some at a time: whoever asks more of them later has the same first steps."""
    ids = column_of(examples, "id")
    ends = steps(len(ids) if texts is None else min(texts, len(ids)))
    order = keyed_order(ids)
    for start, end in pairwise((0, *ends)):
        yield some_of(examples, order[start:end].sort().values.numpy())


def grows(examples: Sequence[Example], texts: int | None) -> bool:
    """Whether so many texts end with a step that stays one when more are asked."""
    return texts is None or texts >= len(examples) or texts in steps(texts + 1)
