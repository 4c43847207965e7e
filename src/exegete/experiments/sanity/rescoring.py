"""Rescoring: the same words scored before and after something was done to the model, and what is left of the scores."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.experiments.common.contract import Subject
from exegete.importance.checks import finite
from exegete.importance.contract import Importance, Quantity, Target
from exegete.importance.erasure import sharing
from exegete.measures.rank import kendall
from exegete.tasks.batching import batches_of_one_length

CLOSE = 1e-3  # of the largest score: words that are nearer than that have no order that rounding couldn't turn


class Found(NamedTuple):
    """What one method says of all texts."""

    values: Tensor  # [example, word], NaN beyond a text's end
    error: Tensor | None  # [example], where the method states one


def scored(subject: Subject, methods: Mapping[str, Importance]) -> dict[str, Found]:
    """All words of all texts by every method, for the class that `subject` holds, whatever the model predicts now."""
    model, n = subject.model, len(subject.examples)
    longest = max(map(len, subject.examples), default=0)
    values = {name: torch.full((n, longest), torch.nan, dtype=torch.float64) for name in methods}
    errors = {name: torch.full((n,), torch.nan, dtype=torch.float64) for name in methods}
    for members in batches_of_one_length(subject.examples, size=64, budget=4096):
        batch = model.collate([subject.examples[i] for i in members])
        width = len(subject.examples[members[0]])
        with sharing():
            for name, method in methods.items():
                found = method(model, batch, Target(subject.predicted[members], of=_quantity(method)))
                finite(name, found, batch)
                values[name][members, :width] = found.values[batch.words].double().view(len(members), width)
                if found.error is not None:
                    errors[name][members] = found.error.double()
    return {name: Found(values[name], None if errors[name].isnan().all() else errors[name]) for name in methods}


def _quantity(method: Importance) -> Quantity:
    """What a method explains by its own settings; the change of all classes together is one of probabilities."""
    of: Quantity | Literal["tvd"] = getattr(method, "of", "logit")
    return "probability" if of == "tvd" else of


def compared(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Of [example, word] twice: τ-b of the scores and of their size, whether the ranking stayed, and the change.

    The change is max |after − before|, relative to the largest score of either: 0 for equal scores, at most 2.
    """
    largest = torch.maximum(_largest(before), _largest(after))
    return {
        "tau": kendall(before, after).tau,
        "tau_absolute": kendall(before.abs(), after.abs()).tau,
        "unchanged": torch.tensor([_same_order(*pair) for pair in zip(before, after, strict=True)], dtype=torch.bool),
        "value": torch.where(largest > 0, _largest(after - before) / largest, 0.0),
    }


def _largest(values: Tensor) -> Tensor:
    """max |value| of every text; 0 for a text without words."""
    return torch.nn.functional.pad(values, (0, 1)).nan_to_num().abs().amax(-1)


def _same_order(before: Tensor, after: Tensor) -> bool:
    """Whether two words that one list keeps apart, by more than rounding could, are in that order in the other."""
    a, b = (_apart(values[~values.isnan()]) for values in (before, after))
    return not bool((((a > CLOSE) & (b <= 0)) | ((b > CLOSE) & (a <= 0))).any())


def _apart(values: Tensor) -> Tensor:
    """All differences of the scores of a text, relative to the largest score: [word, word]."""
    largest = _largest(values)
    return (values[:, None] - values) / torch.where(largest > 0, largest, 1.0)
