"""Links: what importances say of every word of a reference, as matrices of words, and the links that they make.

The translator reads a source and the reference up to a step (forced decoding); an importance scores the pieces of the
source for the reference's next piece, right or wrong as the model's own choice may be. Pieces become words: a word of
the source scores the sum (or the maximum) of its pieces, a word of the target the mean over its pieces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from exegete.base.noise import uniform
from exegete.base.ties import levels
from exegete.importance.checks import finite
from exegete.importance.contract import Importance, Target
from exegete.importance.sharing import sharing
from exegete.models.capabilities import Writing
from exegete.models.contract import Predictor
from exegete.models.ours.translator import SOURCE, TARGET
from exegete.tasks.batching import Batch, batches_of_one_length
from exegete.tasks.example import Example, Task
from exegete.tasks.next_word import STEPS, next_words
from exegete.tasks.pieces import word_of_piece
from exegete.tasks.translation import ALL

AlignmentOf = Literal["logit", "probability"]
PieceRule = Literal["sum", "max"]
SIZE, BUDGET = 64, 2048  # steps, and words of their sources, that are scored at a time: each has a vocabulary of logits
_ASKED = "asked"  # a split's name; a view of `train` would be none


class AlignmentTarget(NamedTuple):
    """What is explained, the same for every method."""

    of: AlignmentOf = "logit"
    pieces: PieceRule = "sum"  # what a word of the source scores, of the scores of its pieces


class Aligned(NamedTuple):
    """What methods say of some sentences."""

    scores: dict[str, list[Tensor]]  # by method, of every sentence: [target word, source word], float64
    signed: dict[str, bool]  # by method
    right: list[float | None]  # of every sentence: the share of pieces that the model would have chosen itself


def align(
    model: Writing, task: Task, sentences: Sequence[Example], methods: Mapping[str, Importance], asked: AlignmentTarget
) -> Aligned:
    """Score the source's words for every word of every reference."""
    view, steps = model.as_classes(), steps_of(task, sentences, model)
    place = {e.id: i for i, e in enumerate(sentences)}
    empty = [torch.zeros(len(e.texts[TARGET]), len(e.texts[SOURCE]), dtype=torch.float64) for e in sentences]
    scores = {name: [matrix.clone() for matrix in empty] for name in methods}  # of pieces
    signed: dict[str, bool] = {}
    right = [torch.zeros(len(matrix), dtype=torch.float64) for matrix in empty]
    for members in batches_of_one_length(steps, SIZE, BUDGET):
        batch = model.collate([steps[i] for i in members])
        where = [(place[number // STEPS], number % STEPS) for number in batch.ids.tolist()]
        for (i, step), hit in zip(where, _right(view, batch), strict=True):
            right[i][step] = hit
        with sharing():
            for name, importance in methods.items():
                found = importance(view, batch, Target(batch.label, of=asked.of))
                finite(name, found, batch)
                signed[name] = found.signed
                for (i, step), row, words in zip(where, found.values.detach().double(), batch.words, strict=True):
                    scores[name][i][step] = row[words].cpu()
    pairs = {name: zip(matrices, sentences, strict=True) for name, matrices in scores.items()}
    words = {name: [of_words(m, e, asked.pieces) for m, e in both] for name, both in pairs.items()}
    return Aligned(words, signed, [float(hits.mean()) if len(hits) else None for hits in right])


def steps_of(task: Task, sentences: Sequence[Example], model: Writing) -> tuple[Example, ...]:
    """An example for every piece of every reference; the end symbol is no word and is left out."""
    lengths = {e.id: len(e.texts[TARGET]) for e in sentences}
    seen = next_words(replace(task, splits={_ASKED: tuple(sentences)}), model.reader, ALL)
    return tuple(e for e in seen.split(_ASKED) if e.id % STEPS < lengths[e.id // STEPS])


@torch.no_grad()
def _right(model: Predictor, batch: Batch) -> list[float]:
    return (model.logits(batch).argmax(-1) == batch.label).double().tolist()


def of_words(scores: Tensor, sentence: Example, pieces: PieceRule) -> Tensor:
    """Scores of pieces [target piece, source piece] as scores of words [target word, source word].

    Words of the source first: with `max` the pieces of a word of the target may have their highest in different ones.
    """
    source, target = (torch.tensor(word_of_piece(text), dtype=torch.int64) for text in sentence.texts)
    columns, rows = (int(owner.max()) + 1 if len(owner) else 0 for owner in (source, target))
    owner = source.expand_as(scores)
    if pieces == "max":
        lowest = torch.full((len(scores), columns), -torch.inf, dtype=torch.float64)
        by_source = lowest.scatter_reduce(1, owner, scores, "amax")
    else:
        by_source = torch.zeros(len(scores), columns, dtype=torch.float64).scatter_add(1, owner, scores)
    sums = torch.zeros(rows, columns, dtype=torch.float64).index_add(0, target, by_source)
    return sums / target.bincount(minlength=rows)[:, None]


def links_of(scores: Tensor, key: int, sentence: int) -> tuple[list[int], int]:
    """For every word of the target the source's word of the highest score, and how many of them were tied.

    Ties are broken by noise that the key, the sentence and both words decide: the first word has no advantage.
    """
    if not scores.numel():
        return [], 0
    level = levels(scores)
    best = level == level.amax(-1, keepdim=True)  # [target word, source word]
    rows, columns = (torch.arange(size) for size in scores.shape)
    noise = uniform(key, sentence, rows[:, None], columns)
    return noise.masked_fill(~best, -1).argmax(-1).tolist(), int((best.sum(-1) > 1).sum())
