"""The trained model that the benchmarks of counterfactual attention share, and what the literature does with it."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common import task
from exegete.models.build import build
from exegete.models.ours.classifier import Classifier
from exegete.models.ours.encoders import BiLSTM
from exegete.runs.training import training_key
from exegete.tasks.batching import Batch
from exegete.tasks.example import Example, Task
from exegete.training.fit import Fit
from exegete.training.settings import TrainingSettings
from exegete.training.train import train_in_folder

SIZE = 32  # texts of a batch in the literature


def trained() -> tuple[Classifier, Task]:
    """BiLSTM, 128 units, tanh attention, 300-d random embeddings, two epochs; kept among temporary files."""
    data = task()
    model, settings = build("bilstm:size=300,hidden=128", data, 0), TrainingSettings(epochs=2, metric="accuracy")
    key = training_key(model, data, 0, settings)  # of the training's code too: what is stale is not found
    place = Path(tempfile.gettempdir()) / "exegete-benchmarks" / key
    found = train_in_folder(Fit(model, data, settings, 0), place, key).model
    assert isinstance(found, Classifier)
    return found.eval(), data


class Read(NamedTuple):
    """A batch of the literature: padded states, the mask, the weights and the probability of the second class."""

    members: list[int]
    batch: Batch
    states: Tensor  # [batch, key, size]
    mask: Tensor  # [batch, key]
    weights: Tensor  # [batch, key]
    p: Tensor  # [batch]


def read(model: Classifier, examples: Sequence[Example]) -> Iterator[Read]:
    """All texts by length, 32 a batch, padded and packed."""
    order = sorted(range(len(examples)), key=lambda i: len(examples[i]))
    for start in range(0, len(order), SIZE):
        members = order[start : start + SIZE]
        batch = model.collate([examples[i] for i in members])
        with torch.no_grad():
            states = packed(model, model.embedding(batch.tokens), batch.lengths)
            weights = model.project(model.scorer(states), batch.words)
            yield Read(members, batch, states, batch.words, weights, decoded(model, weights, states))


def packed(model: Classifier, embedded: Tensor, lengths: Tensor) -> Tensor:
    """States of padded texts."""
    assert isinstance(model.encoder, BiLSTM)
    sequence = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(model.encoder.lstm(sequence)[0], batch_first=True, total_length=embedded.shape[1])[0]


def decoded(model: Classifier, weights: Tensor, states: Tensor) -> Tensor:
    """σ(W Σ_t α_t h_t + b): weights [..., key] times states [..., key, size], whole."""
    context = (weights[..., None] * states).sum(-2)
    return model.decoder(context)[..., 0].sigmoid()  # type: ignore[no-any-return]
