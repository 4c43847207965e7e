"""Shares: how much of the spread of results does every choice explain, and how much only choices together?

The means of all specifications form a full factorial layout: every level of every choice meets every level of the
others equally often. So the sum of squares divides without overlap (Fisher 1925):

    share of a choice = Σ_levels m (mean of its m specifications − grand mean)² / Σ (each mean − grand mean)²

What is left is `together`: no choice alone, but combinations of them. A share is about the levels that were asked for:
another grid has other shares.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from exegete.base.errors import ExegeteError
from exegete.experiments.common.summaries import TAILS, columns, or_none, resampled_means

SPECIFICATION = ("importance", "coefficient")
TOGETHER = "together"
AMONG = {"all": None, "gradient": "gradient", "leave_one_out": "leave_one_out"}  # whose importances are compared
Choices = Mapping[str, Sequence[Hashable]]  # by name of the choice: what every specification chose


def choice_shares(means: Tensor, choices: Choices) -> dict[str, Tensor]:
    """The share of every choice that has two levels or more, and of what they do together: [..., specification].

    NaN where all means are equal or one is undefined.
    """
    levels = {name: list(dict.fromkeys(chosen)) for name, chosen in choices.items()}
    every = set(zip(*choices.values(), strict=True))
    if not prod(map(len, levels.values())) == len(every) == means.shape[-1]:
        raise ExegeteError("shares need every combination of the choices exactly once")
    apart = means - means.mean(-1, keepdim=True)
    total = apart.square().sum(-1)
    squares = {
        name: torch.stack([_effect(apart, choices[name], level) for level in found]).sum(0)
        for name, found in levels.items()
        if len(found) > 1
    }
    left = total - sum(squares.values(), torch.zeros_like(total))
    return {name: each / total for name, each in (squares | {TOGETHER: left}).items()}  # 0/0 is NaN


def _effect(apart: Tensor, chosen: Sequence[Hashable], level: Hashable) -> Tensor:
    """m × (mean of a level)², of deviations from the grand mean."""
    among = torch.tensor([choice == level for choice in chosen])
    return among.sum() * apart[..., among].mean(-1).square()


class _Cells(NamedTuple):
    """The values and chance levels of every specification with every seed, and what it chose."""

    choices: dict[str, list[Hashable]]
    values: Tensor  # [cell, example]
    chance: Tensor  # [cell, example]


def decompose_spread(rows: pl.DataFrame, choices_of: Callable[[str], Mapping[str, str | None]]) -> pl.DataFrame:
    """By task, model, family of importances and scale: the share of every choice, with an interval over texts.

    `coefficient` takes the means as they are; `above_chance` takes (mean − chance) / (1 − chance), so that coefficients
    with another chance level can be compared. Texts are resampled, the same for every specification; seeds are not.
    """
    found = [
        {"task": task, "model": model, "among": among, **row}
        for (task, model), part in rows.partition_by("task", "model", as_dict=True, maintain_order=True).items()
        for among, family in AMONG.items()
        for row in _family(part, family, choices_of)
    ]
    return pl.DataFrame(found, infer_schema_length=None)


def _family(
    part: pl.DataFrame, family: str | None, choices_of: Callable[[str], Mapping[str, str | None]]
) -> Iterator[dict[str, Any]]:
    """The shares among all importances, or among those of one family, on both scales."""
    kept = part if family is None else part.filter(pl.col("importance").str.starts_with(f"{family}:"))
    if kept.is_empty():
        return
    cells = _cells(kept, None if family is None else choices_of)
    means, drawn = _means(cells.values), _resampled(cells.values)
    chance, drawn_chance = _means(cells.chance), _resampled(cells.chance)
    scales = {
        "coefficient": (means, drawn),
        "above_chance": (_above(means, chance), _above(drawn, drawn_chance)),
    }
    for scale, (point, draws) in scales.items():
        for row in _shared(cells, point, draws):
            yield {"scale": scale, **row}


def _cells(part: pl.DataFrame, choices_of: Callable[[str], Mapping[str, str | None]] | None) -> _Cells:
    """One cell per specification and seed; without `choices_of` an importance is one choice."""
    found = columns(part, SPECIFICATION)
    unrelated = columns(part.with_columns(value=pl.col("chance")), SPECIFICATION)
    seeds = part["seed"].unique(maintain_order=True).to_list()
    cells = [(importance, coefficient, seed) for importance, coefficient in found.keys for seed in seeds]
    named: dict[str, list[Hashable]] = {"importance": [cell[0] for cell in cells]}
    if choices_of is not None:
        chosen = [choices_of(cell[0]) for cell in cells]
        named = {name: [each[name] for each in chosen] for name in chosen[0]}
    named |= {"coefficient": [cell[1] for cell in cells], "seed": [cell[2] for cell in cells]}
    return _Cells(named, found.values.flatten(0, 1), unrelated.values.flatten(0, 1))


def _means(values: Tensor) -> Tensor:
    """Over the examples that have a value: [cell, example] -> [cell]."""
    return values.nanmean(-1)


def _resampled(values: Tensor) -> Tensor:
    """Means over samples of examples with replacement: [cell, example] -> [draw, cell]."""
    total = resampled_means(values.nan_to_num().T.contiguous())
    return total / resampled_means((~values.isnan()).double().T.contiguous())


def _above(means: Tensor, chance: Tensor) -> Tensor:
    """(mean − chance) / (1 − chance); NaN where chance is 1."""
    return torch.where(chance < 1 - 1e-9, (means - chance) / (1 - chance), torch.nan)


def _shared(cells: _Cells, point: Tensor, draws: Tensor) -> Iterator[dict[str, Any]]:
    """A row per choice; the quantiles are of the draws in which all means are defined."""
    resampled = choice_shares(draws, cells.choices)
    for choice, share in choice_shares(point, cells.choices).items():
        defined = resampled[choice][~resampled[choice].isnan()]
        ends = defined.quantile(torch.tensor(TAILS, dtype=torch.float64)).tolist() if len(defined) else [None, None]
        known = or_none(share.item())
        yield {
            "choice": choice,
            "levels": len(set(cells.choices[choice])) if choice != TOGETHER else None,
            "specifications": point.shape[-1],
            "undefined": int(point.isnan().sum()),
            "n": cells.values.shape[-1],
            "share": known,
            "low": None if known is None else or_none(ends[0]),
            "high": None if known is None else or_none(ends[1]),
        }
