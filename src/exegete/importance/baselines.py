"""Baselines: a text with nothing in it, which methods that explain a difference compare a text with.

Only words are replaced. Start and end symbols say nothing about a text, so they keep their embeddings, and a difference
f(x) − f(b) is due to words alone.
"""

from typing import Literal

import torch
from torch import Tensor

from exegete.base.errors import UsageError
from exegete.models.contract import AttentionModel
from exegete.models.ours.classifier import Classifier
from exegete.tasks.batching import Batch
from exegete.tasks.vocabulary import PAD, SPECIAL, UNKNOWN

Baseline = Literal["zero", "mean", "unknown", "padding"]


def no_mean_word(model: AttentionModel) -> str | None:
    """Why a model has no mean word, as a sentence; None if it has one."""
    if not isinstance(model, Classifier):
        return "baseline=mean needs a model with a table of words: use baseline=zero or baseline=unknown"
    if not model.vocabulary.words:
        return "baseline=mean needs a vocabulary with words: lower the task's min_df, or use baseline=zero"
    return None


def baseline(model: AttentionModel, batch: Batch, name: Baseline) -> Tensor:
    """The embeddings of a batch with every word replaced.

    By `zero`, the zero vector; by `mean`, the mean embedding of the vocabulary's words; by `unknown`, the unknown word,
    which is our mask token; by `padding`, the padding symbol as if it were a word.
    """  # [batch, token, size]
    with torch.no_grad():
        embedded = model.embed(batch)
        return torch.where(batch.words[..., None], _replacement(model, batch, embedded, name), embedded)


def _replacement(model: AttentionModel, batch: Batch, embedded: Tensor, name: Baseline) -> Tensor:
    if name == "zero":
        return torch.zeros_like(embedded)
    if name == "mean":
        if (reason := no_mean_word(model)) is not None:
            raise UsageError(reason)
        assert isinstance(model, Classifier)
        means = torch.stack([table.weight[len(SPECIAL) :].mean(0) for table in model.tables])  # [text, size]
        return means[batch.part.clamp(min=0, max=len(means) - 1)]
    token = UNKNOWN if name == "unknown" else PAD
    return model.embed(batch._replace(tokens=torch.where(batch.words, token, batch.tokens)))
