"""Counterfactual attention: what permuted and adversarial weights share: facts of a text, bins of max attention, means.

"The largest weight" and "keys" are those of the readout: words, sentences of a hierarchical model, and the null key of
a ladder. With several heads the weight of a key is its mean over them, and entropies are averaged over them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor

from exegete.base.places import places
from exegete.experiments.common.contract import Subject, subject_kind
from exegete.experiments.common.pooling import Pooled
from exegete.experiments.common.side_by_side import float_column
from exegete.experiments.common.summaries import or_none
from exegete.experiments.common.tallies import ALL, mean_with_interval, shown_classes
from exegete.interventions.search import Adversaries
from exegete.measures.bins import BINS, bin_of
from exegete.measures.divergence import normalised_entropy
from exegete.tasks.example import Example


class Furthest(NamedTuple):
    """The searched weights of every text that are furthest from its own, within ε; its own where there are none."""

    jsd: Tensor  # [batch], ε-max JSD; 0 for its own weights
    tvd: Tensor  # [batch], of the prediction under them
    weights: Tensor  # [batch, head, key]


def furthest(own: Tensor, found: Adversaries, epsilon: float) -> Furthest:
    """ε-max JSD: the largest JSD to a text's own weights [batch, head, key] among candidates that move its prediction
    by a TVD of at most ε, and the own weights, which are always within ε (Jain & Wallace 2019, section 4.3).
    """
    best = found.best(epsilon)
    there, place = best >= 0, best.clamp(min=0)[:, None]
    jsd, tvd = (of.gather(1, place)[:, 0].where(there, 0.0) for of in (found.jsd, found.tvd))
    weights = found.weights[places(own, 0), place[:, 0]]
    return Furthest(jsd, tvd, weights.where(there[:, None, None], own))


def facts(subject: Subject, pool: Pooled, predicted: Tensor | None = None) -> dict[str, Any]:
    """What every row says of its text: example, n, keys, kind, gold, predicted, max_attention, entropy.

    Predicted is the subject's class, unless another model's is given, [batch].
    """
    labels, examples = subject.task.labels, members(subject.examples, pool)
    own = subject.predicted[pool.members] if predicted is None else predicted
    return {
        "example": pool.ids.tolist(),
        "n": [len(e) for e in examples],
        "keys": pool.mask.sum(-1).tolist(),
        "kind": [subject_kind(subject)] * len(examples),
        "gold": [subject.task.gold(e) for e in examples],
        "predicted": [labels[c] for c in own.tolist()],
        "max_attention": pool.key_weights.amax(-1),
        "entropy": normalised_entropy(pool.weights, pool.mask[:, None]).mean(-1),
    }


def frame(
    parts: Sequence[Mapping[str, Any]], like: Sequence[Example], types: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """Columns of several pools, lists or tensors [batch] whose NaN is null, as rows in the order of the examples."""
    columns = {name: [part[name] for part in parts] for name in (parts[0] if parts else {})}
    joined = {
        name: float_column(torch.cat(some))
        if isinstance(some[0], Tensor)
        else [value for part in some for value in part]
        for name, some in columns.items()
    }
    order = pl.DataFrame({"example": [e.id for e in like]}, schema={"example": pl.Int64})
    whole = pl.DataFrame(joined, schema_overrides=types)  # a column of nulls has a type, too
    return order.join(whole, on="example", how="left", maintain_order="left") if parts else order


def members(examples: Sequence[Example], pool: Pooled) -> list[Example]:
    """The examples of a pool."""
    return [examples[i] for i in pool.members]


def several_keys(pool: Pooled) -> Tensor:
    """Whether a text has more than one key, [batch]: a single weight can be nothing but 1."""
    return pool.mask.sum(-1) > 1


def median(values: Tensor) -> Tensor:
    """The median over the last dimension: the mean of the two middle values of an even number, as numpy has it.

    torch's own is the lower of the two, and its sort takes several times as long as numpy's.

    >>> median(torch.tensor([4.0, 1.0, 3.0, 2.0])).item()
    2.5
    """
    ordered, n = torch.from_numpy(np.sort(values.cpu().numpy(), axis=-1)), values.shape[-1]
    return ((ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2).to(values.device)


def group_rows(
    rows: pl.DataFrame, keys: Sequence[str], against: str = "max_attention"
) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
    """Rows by keys, predicted class (and all) and bin of a number (and all): what names a group, and the group."""
    binned = rows.with_columns(bin=bin_of(pl.col(against)))
    for key, cell in binned.partition_by(keys, as_dict=True, maintain_order=True).items():
        for predicted in (ALL, *shown_classes(cell["predicted"])):
            own = cell if predicted == ALL else cell.filter(pl.col("predicted") == predicted)
            for bin_ in (ALL, *BINS):
                group = own if bin_ == ALL else own.filter(pl.col("bin") == bin_)
                if not group.is_empty():
                    yield dict(zip(keys, key, strict=True)) | {"class": predicted, "bin": bin_}, group


def spread_columns(group: pl.DataFrame, value: str, most: float | None = None) -> dict[str, Any]:
    """Seeds, n, number undefined, mean, interval (cut to [0, most]) and median of a column over a group of texts."""
    return mean_with_interval(group, value, most=most) | {"median": or_none(group[value].median())}


def margins(logits: Tensor, predicted: Tensor) -> Tensor:
    """The logit of a class minus the best of the others: [batch, draw, class] and [batch] -> [batch, draw]."""
    place = predicted.view(-1, 1, 1).expand(-1, logits.shape[1], 1)
    others = logits.scatter(-1, place, -torch.inf)
    return logits.gather(-1, place)[..., 0] - others.amax(-1)
