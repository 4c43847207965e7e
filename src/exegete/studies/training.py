"""Training one model by name, outside of a study."""

from pathlib import Path

from exegete.base.names import parse, validate
from exegete.base.progress import Progress, silent
from exegete.models.build import build
from exegete.models.settings import MODELS
from exegete.studies.cell import training_key
from exegete.studies.engine import one_thread
from exegete.tasks.catalogue import load_task
from exegete.training.checkpoint import Checkpoint
from exegete.training.settings import TrainingSettings
from exegete.training.train import train


def train_model(
    task: str, model: str, seed: int, training: str, out: Path, progress: Progress = silent
) -> tuple[Checkpoint, tuple[str, ...]]:
    """Train, or find what was trained before, into a checkpoint folder; with what must be said of the data."""
    settings: TrainingSettings = validate(TrainingSettings, parse(f"training:{training}").settings, "training")
    MODELS.make(model)  # wrong settings are found before the texts are read
    with one_thread():
        loaded = load_task(task)
        built = build(model, loaded, seed)
        key = training_key(built, loaded, seed, settings)
        return train(built, loaded, seed, settings, out, key, progress), loaded.notes
