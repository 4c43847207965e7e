"""A translator that tests explain: large enough in its weights to write other words at other steps."""

from dataclasses import replace
from pathlib import Path

import torch

from exegete.tasks.vocabulary import END
from exegete.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

KEPT = Path(__file__).parents[1] / "kept" / "0.1" / "checkpoints"
SOURCE = "two green dogs fear five cats"


def translator(kind: str = "translator") -> Checkpoint:
    found, drawn = load_checkpoint(KEPT / kind), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in found.model.parameters():
            weights.normal_(0, 0.7, generator=drawn)
        found.model.bias[END] = -4.0  # type: ignore[attr-defined]
    return found


def saved_translator(folder: Path, kind: str = "translator") -> Path:
    save_checkpoint(folder, replace(translator(kind), key="k"))
    return folder
