"""Weights of a search: what a search finds for every text, brought to words as `seen` brings a model's own.

So weights of companions and searched ones can stand in one table: JSD is that of the weights of words, and a ladder's
null key, which takes what words leave, is in neither.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.experiments.common.contract import Subject
from exegete.experiments.common.counterfactuals import furthest
from exegete.experiments.common.pooling import Pooled, open_pooled
from exegete.experiments.common.side_by_side import DRAWS, TextsAsSeen, permuted_jsd, weights_of_words, word_keys
from exegete.interventions import search as searching
from exegete.interventions.search import Adversaries
from exegete.measures.divergence import jsd


class Searched(NamedTuple):
    """The furthest weights of every text within a tolerance; its own where there are none."""

    tvd: Tensor  # [example]
    jsd: Tensor  # [example], NaN for texts of one key or without weights
    permuted_jsd: Tensor  # [example], likewise
    predicted: Tensor  # [example]


def search_weights(
    subject: Subject, base: TextsAsSeen, tolerances: Sequence[float], seed: int, draws: int = DRAWS
) -> Iterator[Searched]:
    """For every tolerance what the search finds; texts are searched once, with its default settings."""
    pools = list(open_pooled(subject.model, subject.examples))
    real = [word_keys(subject.model, pool, subject.examples) for pool in pools]
    found = [_found(pool, words) for pool, words in zip(pools, real, strict=True)]
    order = torch.tensor([place for pool in pools for place in pool.members]).argsort()
    for tolerance in tolerances:
        picked = [_picked(*each, tolerance, seed, draws) for each in zip(pools, real, found, strict=True)]
        columns = Searched(*(torch.cat(column)[order] for column in zip(*picked, strict=True)))
        far, shuffled = (column.where(base.compared, torch.nan) for column in (columns.jsd, columns.permuted_jsd))
        yield columns._replace(jsd=far, permuted_jsd=shuffled)


def _found(pool: Pooled, words: Tensor) -> Adversaries:
    """The candidates of a pool, with the JSD of weights of words."""
    found = searching.find(pool.opened, searching.Search())
    theirs = weights_of_words(found.weights, words[:, None, None])  # [batch, candidate, head, key]
    far = jsd(weights_of_words(pool.weights, words[:, None])[:, None].expand_as(theirs), theirs)
    far = far.where(theirs.sum(-1) > 0, 0.0)  # all on the null key: no weights to compare
    return found._replace(jsd=far.mean(-1))


def _picked(pool: Pooled, words: Tensor, found: Adversaries, tolerance: float, seed: int, draws: int) -> Searched:
    """The chosen candidate of every text of a pool, [text] each."""
    best = furthest(pool.weights, found, tolerance)
    ours, theirs = (weights_of_words(weights, words[:, None]) for weights in (pool.weights, best.weights))
    shuffled = permuted_jsd(ours, theirs, words, pool.ids, seed, draws)
    columns = Searched(best.tvd, best.jsd, shuffled, pool.decode(best.weights[:, None])[:, 0].argmax(-1))
    return Searched(*(column.cpu() for column in columns))
