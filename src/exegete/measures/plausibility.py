"""Plausibility: are the words that an importance ranks first those that people marked? (DeYoung et al. 2020, section 4)

Scores come as [text, word] with NaN beyond a text's end, marks as bool of the same shape. A text without any mark, or
with all its words marked, can't tell rankings apart: its value is NaN, to be counted as undefined. Words that tie are
in no order: precision and token F1 are the mean over all their orders, average precision takes them as one group, and
IOU F1, which needs one selection, orders them by keyed noise.

Plausibility is not faithfulness: people may like what a model ignores.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.base.noise import uniform
from exegete.base.ties import levels

OVERLAP = 0.5  # two spans are the same if they share more than this of their union


def precision_at(scores: Tensor, marked: Tensor, k: Tensor | int) -> Tensor:
    """Share of marked words among the k that score highest; a word that ties for the last places counts in part."""
    k = _sizes(k, scores)
    return (_selected_marks(scores, marked, k) / k).where(_defined(scores, marked, k), torch.nan)


def token_f1(scores: Tensor, marked: Tensor, k: Tensor | int) -> Tensor:
    """2 |S ∩ M| / (|S| + |M|) of the k highest words S and the marked ones M (section 4.1)."""
    k = _sizes(k, scores)
    f1 = 2 * _selected_marks(scores, marked, k) / (k + marked.sum(1))
    return f1.where(_defined(scores, marked, k), torch.nan)


def auprc(scores: Tensor, marked: Tensor) -> Tensor:
    """Average precision (1/|M|) Σ_{i ∈ M} precision of the words that score at least as high as i (section 4.1).

    The area under the curve of precision and recall by steps, as scikit-learn computes it.
    """
    precision = _at_least(scores, marked) / _at_least(scores, ~scores.isnan())  # [text, word]
    mean = precision.where(marked, 0).sum(1) / marked.sum(1)
    return mean.where(_defined(scores, marked), torch.nan)


def iou_f1(scores: Tensor, marked: Tensor, k: Tensor | int, ids: Tensor, seed: int = 0) -> Tensor:
    """F1 over spans, runs of neighbouring words: one is found if it shares more than half of its union with another.

    Above one half no span can match two others, so the matches serve precision and recall alike (section 4.1).
    """
    k = _sizes(k, scores)
    chosen = _spans(top(scores, k, ids, seed))
    gold = _spans(marked)
    f1 = 2 * _matches(chosen, gold) / (chosen.number + gold.number)
    return f1.where(_defined(scores, marked, k), torch.nan)


def top(scores: Tensor, k: Tensor | int, ids: Tensor, seed: int = 0) -> Tensor:
    """The k words that score highest, [text, word]; of equals, those that keyed noise puts first."""
    k = _sizes(k, scores)
    noise = uniform(seed, ids[:, None], torch.arange(scores.shape[1])).argsort(dim=1)
    worst_last = levels(scores).nan_to_num(nan=-torch.inf)
    order = noise.gather(1, worst_last.gather(1, noise).argsort(dim=1, descending=True, stable=True))
    place = torch.empty_like(order).scatter_(1, order, torch.arange(order.shape[1]).expand_as(order))
    return (place < k[:, None]) & ~scores.isnan()


def precision_chance(scores: Tensor, marked: Tensor, k: Tensor | int = 1) -> Tensor:
    """|M| / T: what a random ranking scores on average, for every k."""
    share = marked.sum(1) / (~scores.isnan()).sum(1)
    return share.where(_defined(scores, marked, _sizes(k, scores)), torch.nan)


def token_f1_chance(scores: Tensor, marked: Tensor, k: Tensor | int) -> Tensor:
    """2 E|S ∩ M| / (k + |M|) with E|S ∩ M| = k |M| / T."""
    k = _sizes(k, scores)
    return precision_chance(scores, marked, k) * 2 * k / (k + marked.sum(1))


def auprc_chance(scores: Tensor, marked: Tensor) -> Tensor:
    """The mean of average precision over all orders of these scores, ties kept together.

    Two given words are marked both with probability m(m−1)/T(T−1), hence, with N_i words that score at least as high as
    word i, (1/T) Σ_i [1 + (N_i − 1)(m − 1)/(T − 1)] / N_i. Without ties this is above the share m/T that all-tied
    scores get.
    """
    m, words = marked.sum(1), ~scores.isnan()
    n = words.sum(1)
    as_high = _at_least(scores, words)
    together = ((m - 1) / (n - 1).clamp(min=1))[:, None]
    each = (1 + (as_high - 1) * together) / as_high
    return (each.where(words, 0).sum(1) / n).where(_defined(scores, marked), torch.nan)


def iou_f1_chance(
    marked: Tensor, words: Tensor, k: Tensor | int, ids: Tensor, draws: int = 10, seed: int = 0
) -> Tensor:
    """The mean over keyed random rankings."""
    places = torch.arange(words.shape[1])
    total = torch.zeros(len(marked), dtype=torch.float64)
    for draw in range(draws):
        noise = uniform(seed, draw, ids[:, None], places).where(words, torch.nan)
        total += iou_f1(noise, marked, k, ids, seed)
    return total / draws


def _sizes(k: Tensor | int, scores: Tensor) -> Tensor:
    """One k per text, at most its number of words."""
    return torch.as_tensor(k).expand(len(scores)).minimum((~scores.isnan()).sum(1))


def _defined(scores: Tensor, marked: Tensor, k: Tensor | None = None) -> Tensor:
    """Whether a text has words with and without mark, and a k to ask about, [text]."""
    words = ~scores.isnan()
    if scores.shape != marked.shape or bool((marked & ~words).any()):
        raise ValueError("marks are bool [text, word] like the scores, and only words are marked")
    mixed = marked.any(1) & (words & ~marked).any(1)
    return mixed if k is None else mixed & (k > 0)


def _at_least(scores: Tensor, among: Tensor) -> Tensor:
    """How many of the words in `among` score at least as high as each word, [text, word]."""
    values = levels(scores).nan_to_num(nan=torch.inf)
    ascending = values.where(among, torch.inf).sort(1).values
    return (among.sum(1, keepdim=True) - torch.searchsorted(ascending, values)).double()


def _selected_marks(scores: Tensor, marked: Tensor, k: Tensor) -> Tensor:
    """E|S ∩ M| over the orders of words that tie for the last places among the k, [text]."""
    words = ~scores.isnan()
    as_high = _at_least(scores, words)
    inside = words & (as_high <= k[:, None])  # for certain, with all that tie with it
    first_after = as_high.where(words & ~inside, torch.inf).amin(1, keepdim=True)
    border = as_high == first_after  # the best words that do not all fit
    places = k - inside.sum(1)
    share = places / border.sum(1).clamp(min=1)
    return (marked & inside).sum(1) + share * (marked & border).sum(1)


class _Spans(NamedTuple):
    """Runs of neighbouring words, numbered over all texts."""

    of: Tensor  # [text, word]: the number of a word's run, -1 outside
    size: Tensor  # [run]
    number: Tensor  # [text]: how many runs


def _spans(chosen: Tensor) -> _Spans:
    begins = chosen & ~torch.nn.functional.pad(chosen, (1, 0))[:, :-1]
    of = (begins.flatten().cumsum(0) - 1).view_as(chosen).where(chosen, -1)
    return _Spans(of, of[chosen].bincount(), begins.sum(1))


def _matches(a: _Spans, b: _Spans) -> Tensor:
    """How many pairs of runs share more than half of their union, [text]."""
    text, _ = both = torch.where((a.of >= 0) & (b.of >= 0))
    pairs, shared = torch.stack([text, a.of[both], b.of[both]]).unique(dim=1, return_counts=True)
    union = a.size[pairs[1]] + b.size[pairs[2]] - shared
    found: Tensor = pairs[0][shared > OVERLAP * union]
    return found.bincount(minlength=len(a.of)).double()
