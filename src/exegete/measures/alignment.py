"""Alignment: how well links between words agree with those that people drew (Och & Ney 2003).

    precision = |A ∩ P| / |A|,   recall = |A ∩ S| / |S|,   AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

A are the links in question, S those that people were sure of, P ⊇ S those that they found possible. All three are taken
over a whole corpus: counts are summed over sentences first. Where there are neither links nor sure links, they are
undefined: NaN, to be counted.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exegete.measures.resampling import Resample, percentiles
from exegete.measures.statistics import Interval
from exegete.tasks.example import Link

COUNTS = 4  # |A ∩ S|, |A ∩ P|, |A|, |S|
LinkPlace = tuple[int, int]  # a word of the source and one of the target


class AlignmentScores(NamedTuple):
    """The three numbers of a corpus, each with its interval over sentences."""

    error_rate: Interval
    precision: Interval
    recall: Interval


def gold_places(links: Iterable[Link]) -> tuple[frozenset[LinkPlace], frozenset[LinkPlace]]:
    """The sure and the possible links of a sentence; what is sure is possible too."""
    found = list(links)
    return (
        frozenset((x.source, x.target) for x in found if x.sure),
        frozenset((x.source, x.target) for x in found),
    )


def alignment_counts(
    predicted: Sequence[Collection[LinkPlace]],
    sure: Sequence[Collection[LinkPlace]],
    possible: Sequence[Collection[LinkPlace]],
) -> Tensor:
    """All that is needed of every sentence, to be summed over any of them: [sentence, COUNTS], int64."""
    if not len(predicted) == len(sure) == len(possible):
        raise ValueError(f"one set of links each: not {len(predicted)}, {len(sure)} and {len(possible)} sentences")
    rows = [
        _counts(i, set(a), set(s), set(p)) for i, (a, s, p) in enumerate(zip(predicted, sure, possible, strict=True))
    ]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), COUNTS)


def alignment_error_rate(counts: Tensor) -> Tensor:
    """AER from summed counts, [..., COUNTS] -> [...], float64; 0 is best."""
    both_sure, both_possible, links, sure = counts.double().unbind(-1)
    return 1 - (both_sure + both_possible) / (links + sure)


def alignment_precision(counts: Tensor) -> Tensor:
    """Share of the links that people found possible, [..., COUNTS] -> [...]."""
    _, both_possible, links, _ = counts.double().unbind(-1)
    return both_possible / links


def alignment_recall(counts: Tensor) -> Tensor:
    """Share of the sure links that were found, [..., COUNTS] -> [...]."""
    both_sure, _, _, sure = counts.double().unbind(-1)
    return both_sure / sure


def agreement(counts: Tensor, level: float = 0.95, draws: int = 2000, seed: int = 0) -> AlignmentScores:
    """The three numbers of all sentences [sentence, COUNTS], with percentiles over samples of them with replacement."""
    measures = (alignment_error_rate, alignment_precision, alignment_recall)
    n = len(counts)
    if not n:
        return AlignmentScores(*(Interval(math.nan, math.nan, math.nan, 0, 0) for _ in measures))
    drawn, whole = Resample(n, draws, seed).sums(counts), counts.sum(0)
    return AlignmentScores(*(_interval(measure(whole).item(), measure(drawn), level, n) for measure in measures))


def _interval(whole: float, drawn: Tensor, level: float, n: int) -> Interval:
    """`n` counts sentences; where the number itself is undefined, all three are NaN."""
    if math.isnan(whole):
        return Interval(math.nan, math.nan, math.nan, n, n)
    return Interval(whole, *percentiles(drawn, level), n, 0)


def _counts(sentence: int, links: set[LinkPlace], sure: set[LinkPlace], possible: set[LinkPlace]) -> list[int]:
    if not sure <= possible:
        raise ValueError(f"what is sure is possible too: in sentence {sentence} {min(sure - possible)} is only sure")
    return [len(links & sure), len(links & possible), len(links), len(sure)]
