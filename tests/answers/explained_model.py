"""A model that tests explain: small, and large enough in its weights to tell words apart."""

from dataclasses import replace
from pathlib import Path

import torch

from exegete.tasks.batching import collate
from exegete.training.checkpoint import Checkpoint, save_checkpoint
from tests.small import small_model, small_task

SPEC = "bilstm:size=7,hidden=6,scale=1"
TEXT = "b a c! D e a? f g"


def checkpoint(spec: str = SPEC, wrap: bool = False) -> Checkpoint:
    task = small_task()
    model = small_model(spec, task.split("train"), wrap)
    with torch.no_grad():  # both classes are predicted, about equally often
        logits = model.trace(collate(task.split("train"), model.vocabulary)).logits
        model.decoder.bias.sub_((logits[:, 1] - logits[:, 0]).median())
    return Checkpoint(model, "small", task.hash, 0, {}, {"test": {"accuracy": 0.5}}, tokenizer="words", lower=True)


def saved(folder: Path) -> Path:
    save_checkpoint(folder, replace(checkpoint(), key="k"))
    return folder
