"""Baselines: a text with nothing in it, which methods that explain a difference compare a text with.

Only words are replaced. Start and end symbols say nothing about a text, so they keep their embeddings, and a difference
f(x) − f(b) is due to words alone.
"""

import torch
from torch import Tensor

from exegete.models.capabilities import Pretrained
from exegete.models.contract import Predictor, ReplacedBy
from exegete.tasks.batching import Batch

Baseline = ReplacedBy


def no_mean_word(model: Predictor) -> str | None:
    """Why a model has no mean word, as a sentence; None if it has one, or has pieces instead."""
    if not model.reader.words and not isinstance(model, Pretrained):
        return "baseline=mean needs a vocabulary with words: lower the task's min_df, or use baseline=zero"
    return None


@torch.no_grad()
def baseline(model: Predictor, batch: Batch, name: Baseline) -> Tensor:
    """The embeddings of a batch with every word replaced (`Predictor.replaced`)."""  # [batch, token, size]
    return model.replaced(batch, batch.words, name)
