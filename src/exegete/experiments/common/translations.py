"""Translations: whole translations under an intervention, and what BLEU needs of each as columns of tidy rows.

BLEU is no mean over sentences, so rows carry the counts that it is made of, and a summary adds them up. With one seed
intervals are Koehn's (2004): sentences resampled, the same for both sides of a difference. Models of several seeds
translate the same sentences, and both vary: then every sentence gets its jackknife pseudo-value (Tukey 1958),

    u_i = N · BLEU − (N − 1) · BLEU without sentence i,

shifted so that their mean is BLEU, and what holds for means over seeds and sentences holds for these.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl
import torch
from torch import Tensor

from exegete.experiments.common.summaries import interval_of, or_none
from exegete.measures.bleu import ORDERS, bleu, bleu_counts, bleu_difference, bleu_interval
from exegete.measures.statistics import Interval
from exegete.models.capabilities import Writing
from exegete.models.contract import Intervention
from exegete.models.ours.generation import greedy
from exegete.models.ours.translator import TARGET
from exegete.tasks.batching import batches_of_one_length
from exegete.tasks.example import Example
from exegete.tasks.pieces import join_pieces

COLUMNS = (
    *(f"matches_{n}" for n in range(1, ORDERS + 1)),
    *(f"ngrams_{n}" for n in range(1, ORDERS + 1)),
    "written",
    "reference",
)
MOST = 100.0
SIZE, BUDGET = 128, 4096  # sentences and words that are translated at a time


def translate_greedily(model: Writing, examples: Sequence[Example], intervene: Intervention | None = None) -> list[str]:
    """Greedy translations as texts, with the intervention at every step."""
    found = [""] * len(examples)
    for members in batches_of_one_length(examples, SIZE, BUDGET):
        written = greedy(model, model.collate([examples[i] for i in members]), intervene)
        for place, rows in zip(members, written.rows, strict=True):
            found[place] = join_pieces(model.words[row] for row in rows)
    return found


def count_translations(model: Writing, examples: Sequence[Example], intervene: Intervention | None = None) -> Tensor:
    """BLEU's counts of every greedy translation, rewritten at every step: [example, count]."""
    references = [join_pieces(e.texts[TARGET]) for e in examples]
    return bleu_counts(translate_greedily(model, examples, intervene), references)


def count_columns(counts: Tensor) -> dict[str, pl.Series]:
    """Counts [example, count] as columns."""
    return {name: pl.Series(counts[:, place].long().numpy()) for place, name in enumerate(COLUMNS)}


def no_counts(length: int) -> dict[str, pl.Series]:
    """The columns of counts where there is nothing to count."""
    return {name: pl.Series([None] * length, dtype=pl.Int64) for name in COLUMNS}


def bleu_scores(rows: pl.DataFrame) -> dict[str, Any]:
    """n, mean (over seeds), low and high of BLEU over the rows of one condition."""
    counts = _by_seed(rows)
    several = [pseudo_values(c) for c in counts]
    found = bleu_interval(counts[0]) if len(counts) == 1 else _over_seeds(torch.stack(several))
    return _told(found, ("mean", "low", "high"), 0.0) | {"n": found.n}


def bleu_change(rows: pl.DataFrame, unaltered: pl.DataFrame) -> dict[str, Any]:
    """Change of BLEU from one condition to another on the same sentences: change, change_low, change_high."""
    after, before = _by_seed(rows), _by_seed(unaltered)
    alone = len(after) == 1
    found = bleu_difference(after[0], before[0]).difference if alone else _over_seeds(-bleu_loss(rows, unaltered))
    return _told(found, ("change", "change_low", "change_high"), -MOST)


def bleu_loss(rows: pl.DataFrame, unaltered: pl.DataFrame) -> Tensor:
    """Values whose mean is what BLEU loses from one condition to another: [seed, example]."""
    pairs = zip(_by_seed(unaltered), _by_seed(rows), strict=True)
    return torch.stack([pseudo_values(before) - pseudo_values(after) for before, after in pairs])


def _by_seed(rows: pl.DataFrame) -> list[Tensor]:
    """Counts [example, count] of every seed, in the order of seeds, each in the order of examples."""
    parts = rows.sort("seed", "example").partition_by("seed", maintain_order=True)
    return [torch.from_numpy(part.select(COLUMNS).to_numpy().copy()) for part in parts]


def pseudo_values(counts: Tensor) -> Tensor:
    """Pseudo-values of BLEU, whose mean it is: [example, count] -> [example]."""
    total, n = counts.sum(0), len(counts)
    whole = bleu(total)
    values = n * whole - (n - 1) * bleu(total - counts)
    return values - values.mean() + whole


def _over_seeds(values: Tensor) -> Interval:
    """Over seeds and sentences: [seed, example]."""
    return interval_of(values, MOST)


def _told(found: Interval, names: tuple[str, str, str], least: float) -> dict[str, float | None]:
    numbers = (or_none(found.mean), or_none(found.low), or_none(found.high))
    return {name: None if x is None else min(MOST, max(least, x)) for name, x in zip(names, numbers, strict=True)}
