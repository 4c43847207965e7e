"""Build: an untrained model for a task, from a name with settings and a seed."""

import torch

from exegete.base.noise import stable_seed
from exegete.models.classifier import Classifier
from exegete.models.hierarchical import Hierarchical
from exegete.models.ladder import Ladder
from exegete.models.last_state import LastState
from exegete.models.rationale import RationaleClassifier
from exegete.models.settings import MODELS, ClassifierSettings, HierarchicalSettings, LadderSettings, RationaleSettings
from exegete.tasks.example import Task
from exegete.tasks.vectors import load_vectors
from exegete.tasks.vocabulary import SPECIAL, Vocabulary, fit_vocabulary


def build(spec: str, task: Task, seed: int = 0) -> Classifier:
    """A model with random weights that depend on the seed alone; vectors where the settings name them."""
    settings: ClassifierSettings = MODELS.make(spec)
    vocabulary = fit_vocabulary(task.split("train"), task.min_df, settings.wrap)
    vectors = load_vectors(settings.vectors, vocabulary.words) if settings.vectors else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stable_seed("init", seed))
        model = make_model(spec, vocabulary, task.labels, vectors.size if vectors else None)
    if vectors:
        with torch.no_grad():
            model.embedding.weight[torch.from_numpy(vectors.found) + len(SPECIAL)] = torch.from_numpy(vectors.rows)
    if isinstance(model, Ladder):
        model.settle()
    return model


def make_model(spec: str, vocabulary: Vocabulary, labels: tuple[str, ...], size: int | None = None) -> Classifier:
    """The class that a name stands for, with weights from the global generator."""
    return _kind(MODELS.make(spec))(spec, vocabulary, labels, size)


def _kind(settings: ClassifierSettings) -> type[Classifier]:
    if isinstance(settings, RationaleSettings):
        return RationaleClassifier
    if isinstance(settings, HierarchicalSettings):
        return Hierarchical
    if isinstance(settings, LadderSettings):
        return Ladder
    return LastState if settings.attention == "none" else Classifier
