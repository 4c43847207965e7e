"""Corpus: the words that may stand in the place of one that is gone, and whether the unknown word means anything."""

from typing import NamedTuple

import torch
from torch import Tensor

from exegete.models.contract import Predictor
from exegete.tasks.example import Task
from exegete.tasks.selection import choose_texts

CORPUS = 1_000  # training texts from which words are drawn


class CorpusWords(NamedTuple):
    """The rows of words that may stand in a word's place, as a model reads them."""

    rows: Tensor  # [word], as often as they occur


def corpus(task: Task, model: Predictor, split: str) -> CorpusWords:
    """The words of some training texts; of the texts that are asked about, where there is no training split."""
    texts = choose_texts(task.splits.get("train", ()) or task.split(split), CORPUS)
    rows = model.reader.rows([word for text in texts for word in text.words])
    return CorpusWords(torch.tensor(rows, device=model.device))


def sees_unknown(task: Task, model: Predictor) -> bool:
    """Whether training showed the model the unknown word: elsewhere it means nothing."""
    return any(not model.reader.knows(word) for text in task.splits.get("train", ()) for word in text.words)
